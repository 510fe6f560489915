# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

"""Runs ringwise and reads its JSON documents.

Decisions use the exit status and the fields of the documents, never the text of a message.
"""

from __future__ import annotations

import json

# Schemas and versions of the documents that this collection reads.
# A program with a later version may have changed the meaning of a field, so it is refused.
SCHEMAS = {
    "ringwise.capture": 1,
    "ringwise.check": 1,
    "ringwise.error": 1,
    "ringwise.outcome": 1,
    "ringwise.plan": 2,
    "ringwise.snapshot": 1,
    "ringwise.status": 1,
    "ringwise.verify": 1,
    "ringwise.watch": 1,
}

OK = 0
NEEDS_ATTENTION = 3
REFUSED = 6

MEANINGS = {
    1: "error; nothing was changed",
    2: "wrong command line; nothing was changed",
    3: "needs attention: not everything that was requested is in effect",
    4: "failed, and everything was restored",
    5: "failed, and not everything was restored",
    6: "refused before anything was changed",
}

# Directories that a non-interactive session often does not search.
DIRECTORIES = ["/usr/local/sbin", "/usr/sbin", "/sbin"]

# Reasons of a setting that the user requested, in contrast to one that only the goal proposes.
REQUESTED = ("configured", "queues_requested")


def common_spec():
    """Options of every module that runs the program."""
    return {
        "executable": {"type": "str", "default": "ringwise"},
        "state_dir": {"type": "path"},
    }


def request_spec():
    """Options of ringwise_plan and ringwise_apply: what is requested."""
    return {
        "interfaces": {"type": "list", "elements": "str", "default": []},
        "goal": {
            "type": "str",
            "choices": ["auto", "balanced", "forward", "rpc", "stream", "latency", "mixed"],
        },
        "config": {"type": "path"},
        "override_config": {"type": "bool", "default": False},
        "set": {"type": "dict", "default": {}},
        "cpus": {"type": "str"},
        "reserve": {"type": "str"},
        "exclude_cpus": {"type": "str"},
        "queues": {"type": "int"},
        "latency_queues": {"type": "int"},
        "smt": {"type": "str", "choices": ["one-per-core", "all"]},
        "far_node": {"type": "str", "choices": ["never", "last", "ok"]},
        "pair_as_article": {"type": "bool", "default": False},
        "allow_disruption": {"type": "bool", "default": False},
        "strict": {"type": "bool", "default": False},
        "take_over": {"type": "bool", "default": False},
    }


VALUES = ("goal", "config", "cpus", "reserve", "exclude_cpus", "queues", "latency_queues", "smt", "far_node")
SWITCHES = ("override_config", "pair_as_article", "allow_disruption", "strict", "take_over")


def flag(name):
    """The option of the program for an option of a module."""
    return "--" + name.replace("_", "-")


def text_of(value):
    """A value of YAML as the program expects it on the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return json.dumps(value)
    return str(value)


def request_args(params):
    """The arguments of plan and apply for the options of request_spec()."""
    args = []
    for name in VALUES:
        if params.get(name) is not None:
            args.append("%s=%s" % (flag(name), params[name]))
    for name in SWITCHES:
        if params.get(name):
            args.append(flag(name))
    for key, value in sorted((params.get("set") or {}).items()):
        args.append("--set=%s=%s" % (key, text_of(value)))
    if params.get("interfaces"):
        args.append("--")
        args.extend(params["interfaces"])
    return args


class Answer:
    """Exit status and document of one run.

    error: the document ringwise.error, which the program prints instead of another one if it failed before that.
    """

    def __init__(self, argv, rc, document, error, stdout, stderr):
        self.argv = argv
        self.rc = rc
        self.document = document
        self.error = error
        self.stdout = stdout
        self.stderr = stderr

    def account(self):
        """What a module returns about the run."""
        account = {"rc": self.rc, "command": self.argv}
        if self.stderr.strip():
            account["stderr"] = self.stderr
        if self.error is not None:
            account["error"] = self.error
        return account


class Program:
    """The program on the managed host."""

    def __init__(self, module):
        self.module = module
        self.path = module.get_bin_path(module.params["executable"], required=False, opt_dirs=DIRECTORIES)

    def required(self):
        """Fails unless the program is installed."""
        if self.path is None:
            self.module.fail_json(
                msg="%s is not installed on this host, or cannot be executed. "
                "The role ringwise.host.ringwise installs it." % self.module.params["executable"]
            )
        return self

    def run(self, command, args, schema):
        """Runs one command. Its stdout is one document of the schema, or of ringwise.error if the command failed.

        schema: None for a command whose output is text; the text is in stdout.
        """
        argv = [self.path, command]
        if schema is not None:
            argv.append("--json")
        argv.append("--quiet")
        if self.module.params.get("state_dir"):
            argv.append("--state-dir=" + self.module.params["state_dir"])
        argv.extend(args)
        rc, stdout, stderr = self.module.run_command(argv)
        document, error = None, None
        if schema is not None and stdout.strip():
            document = self.parsed(argv, rc, stdout, stderr, schema)
            if document["schema"] == "ringwise.error":
                document, error = None, document
        return Answer(argv, rc, document, error, stdout, stderr)

    def parsed(self, argv, rc, stdout, stderr, schema):
        """The document, if it is one that this collection can read."""
        account = {"rc": rc, "command": argv, "stdout": stdout, "stderr": stderr}
        try:
            document = json.loads(stdout)
        except ValueError as e:
            self.module.fail_json(msg="expected a JSON document of %s: %s" % (schema, e), **account)
        found = (document.get("schema"), document.get("version")) if isinstance(document, dict) else (None, None)
        if found not in [(name, SCHEMAS[name]) for name in (schema, "ringwise.error")]:
            self.module.fail_json(
                msg="expected %s version %s, found %s version %s: this collection and the program do not fit together"
                % (schema, SCHEMAS[schema], found[0], found[1]),
                **account,
            )
        return document

    def read(self, command, args, schema, statuses=(OK,)):
        """Runs a command that changes nothing. Fails unless it exits with one of the statuses and prints a document."""
        answer = self.run(command, args, schema)
        if answer.rc not in statuses or answer.document is None:
            self.fail(command, answer, changed=False)
        return answer

    def diff(self, command, args):
        """The unified diff of the plan of this command: plan, or apply with --dry-run."""
        answer = self.run(command, ["--output=diff"] + args, None)
        if answer.rc != OK:
            self.fail(command, answer, changed=False)
        return answer.stdout

    def fail(self, command, answer, **more):
        """Ends the module as failed, with the account of the run."""
        account = answer.account()
        account.update(more)
        self.module.fail_json(msg=message(command, answer), **account)


def message(command, answer):
    """One line: the command, what the exit status means, and what the kernel or the program reported."""
    meaning = MEANINGS.get(answer.rc, "exited with an unexpected status")
    text = "ringwise %s exited with status %s: %s" % (command, answer.rc, meaning)
    failure = (answer.document or {}).get("failed")
    if failure:
        where = setting_name(failure.get("setting") or {})
        text += ". %s%s (%s)" % (where + ": " if where else "", failure.get("meaning"), failure.get("words"))
    if answer.error is not None:
        text += ". " + answer.error["message"]
        if answer.error.get("next"):
            text += ". Try: " + answer.error["next"]
    elif answer.stderr.strip():
        text += ". " + answer.stderr.strip()
    return text


def setting_name(setting):
    """Interface, knob and queue of a setting, without its value."""
    name = [setting[key] for key in ("dev", "knob") if setting.get(key)]
    place = setting.get("of", setting.get("queue"))
    if isinstance(place, dict):
        name.extend("%s-%s" % pair for pair in sorted(place.items()))
    elif place is not None:
        name.append(str(place))
    return " ".join(name)


def competing_programs(plan):
    """What the plan reports about programs that change the same settings, one text each."""
    reports = list(plan["warnings"])
    settings = [step["setting"] for step in plan["steps"]]
    devices = sorted(s["dev"] for s in settings if s["knob"] == "irqbalance_ban")
    if devices:
        reports.append(
            "irqbalance runs on this host: the interrupts of %s are added to its ban list, so that it does not move them"
            % ", ".join(devices)
        )
    return reports


def requested_but_skipped(plan):
    """Names of settings that the user requested and that the plan skips because they interrupt traffic."""
    skipped = [s for s in plan["left_out"] if s["reason"].get("code") in REQUESTED]
    return [setting_name(s["setting"]) for s in skipped]
