# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import importlib
import json

import pytest

from ansible.module_utils import basic

from ansible_collections.ringwise.host.tests.fake import scenarios


try:
    from ansible.module_utils.testing import patch_module_args
except ImportError:  # ansible-core 2.18 and earlier

    @contextlib.contextmanager
    def patch_module_args(args):
        """Passes the arguments to the next module."""
        before = basic._ANSIBLE_ARGS
        basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": args}).encode()
        try:
            yield
        finally:
            basic._ANSIBLE_ARGS = before


class Host:
    """A stand-in of the program, and the modules that run it."""

    def __init__(self, folder, capfd):
        self.folder = str(folder)
        self.capfd = capfd
        self.program = None

    def answers(self, **commands):
        """One state: dry_run is "apply --dry-run", diff and plan_diff are the diffs of apply and plan."""
        names = {"dry_run": "apply --dry-run", "diff": "apply --output=diff", "plan_diff": "plan --output=diff"}
        self.replays({"start": {names.get(k, k): v for k, v in commands.items()}})

    def replays(self, scenario):
        self.program = scenarios.write(self.folder, scenario)

    def calls(self, command=None):
        calls = scenarios.calls(self.folder)
        return [c for c in calls if command is None or c[0] == command]

    def run(self, name, check=False, diff=False, **params):
        """Runs a module as Ansible does, and returns its result."""
        module = importlib.import_module("ansible_collections.ringwise.host.plugins.modules." + name)
        if self.program and "executable" not in params:
            params["executable"] = self.program
        params.update(_ansible_check_mode=check, _ansible_diff=diff)
        self.capfd.readouterr()
        with patch_module_args(params), pytest.raises(SystemExit):
            module.main()
        return json.loads(self.capfd.readouterr().out)


@pytest.fixture
def host(tmp_path, capfd):
    return Host(tmp_path / "fake", capfd)
