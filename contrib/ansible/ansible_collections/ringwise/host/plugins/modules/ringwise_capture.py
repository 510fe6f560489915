#!/usr/bin/python
# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

DOCUMENTATION = r"""
module: ringwise_capture
short_description: Record a host into a file for ringwise
description:
  - Runs C(ringwise capture). Other commands read the file with C(--from), on any machine.
  - The file stays on the managed host. M(ansible.builtin.fetch) copies it to the controller.
author: the ringwise developers (@ringwise)
version_added: "0.2.0"
extends_documentation_fragment:
  - ringwise.host.ringwise.program
options:
  dest:
    description: File to write. If it exists, nothing is recorded unless O(force=true).
    type: path
    required: true
  force:
    description: Replace a file that exists.
    type: bool
    default: false
  redact:
    description: Replace addresses and names, and remove passwords. Without it the file holds them as the kernel reports them.
    type: bool
    default: false
  passive:
    description: Read files only, and send no request that takes the network lock.
    type: bool
    default: false
  duration:
    description: Also count packets, interrupts and losses for this time, such as V(5s).
    type: str
attributes:
  check_mode:
    description: Reports whether the host would be recorded.
    support: full
"""

EXAMPLES = r"""
- name: Record the host
  ringwise.host.ringwise_capture:
    dest: /var/tmp/host.tar.gz
    duration: 5s
    force: true

- name: Collect the file
  ansible.builtin.fetch:
    src: /var/tmp/host.tar.gz
    dest: "caps/{{ inventory_hostname }}.tar.gz"
    flat: true
"""

RETURN = r"""
capture:
  description: The document C(ringwise.capture) version 1. Null if nothing was recorded.
  type: dict
  returned: success
dest:
  description: The file.
  type: str
  returned: success
rc:
  description: Exit status of the program.
  type: int
  returned: if it ran
"""

import os
import shutil
import tempfile

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ringwise.host.plugins.module_utils import program


def record(module, ringwise, folder):
    """Records into a new file in the folder, because the program never overwrites one."""
    params = module.params
    file = os.path.join(folder, "capture.tar.gz")
    args = [flag for flag, wanted in (("--redact", params["redact"]), ("--passive", params["passive"])) if wanted]
    if params["duration"]:
        args.append("--for=" + params["duration"])
    answer = ringwise.read("capture", args + ["--", file], "ringwise.capture")
    module.atomic_move(file, params["dest"])
    return answer


def main():
    spec = dict(
        program.common_spec(),
        dest={"type": "path", "required": True},
        force={"type": "bool", "default": False},
        redact={"type": "bool", "default": False},
        passive={"type": "bool", "default": False},
        duration={"type": "str"},
    )
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    dest = module.params["dest"]
    ringwise = program.Program(module).required()
    if os.path.isdir(dest):
        module.fail_json(msg="%s is a directory, expected a file" % dest)
    if os.path.exists(dest) and not module.params["force"]:
        module.exit_json(changed=False, dest=dest, capture=None)
    if module.check_mode:
        module.exit_json(changed=True, dest=dest, capture=None)
    try:
        folder = tempfile.mkdtemp(prefix=".ringwise-", dir=os.path.dirname(os.path.abspath(dest)))
    except OSError as e:
        module.fail_json(msg="cannot write beside %s: %s" % (dest, e))
    try:
        answer = record(module, ringwise, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    document = dict(answer.document, file=dest)
    module.exit_json(changed=True, dest=dest, capture=document, **answer.account())


if __name__ == "__main__":
    main()
