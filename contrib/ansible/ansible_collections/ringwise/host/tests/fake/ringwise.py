# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

"""A stand-in for the program: it replays recorded answers, and changes nothing.

Usage: ringwise.py FOLDER COMMAND [ARGUMENT]...

FOLDER/scenario.json maps states to commands, and a command to {rc, stdout, stderr, file, next}. "apply --dry-run",
"persist --dry-run", "apply --output=diff" and "plan --output=diff" are commands of their own. The present state is in
FOLDER/state, and FOLDER/log has the arguments of every call.
"""

from __future__ import annotations

import json
import os
import sys


def command(arguments):
    """The name under which the answer is stored."""
    for more in ("--output=diff", "--dry-run"):
        if more in arguments:
            return "%s %s" % (arguments[0], more)
    return arguments[0]


def main():
    folder, arguments = sys.argv[1], sys.argv[2:]
    with open(os.path.join(folder, "scenario.json"), encoding="utf-8") as f:
        scenario = json.load(f)
    with open(os.path.join(folder, "log"), "a", encoding="utf-8") as f:
        f.write(json.dumps(arguments) + "\n")
    state_file = os.path.join(folder, "state")
    state = "start"
    if os.path.exists(state_file):
        with open(state_file, encoding="utf-8") as f:
            state = f.read()
    answer = scenario.get(state, {}).get(command(arguments))
    if answer is None:
        sys.stderr.write("no answer to %s in state %s\n" % (command(arguments), state))
        return 99
    if "next" in answer:
        with open(state_file, "w", encoding="utf-8") as f:
            f.write(answer["next"])
    if "file" in answer:
        with open(arguments[-1], "w", encoding="utf-8") as f:
            f.write(answer["file"])
    sys.stdout.write(answer.get("stdout", ""))
    sys.stderr.write(answer.get("stderr", ""))
    return answer.get("rc", 0)


if __name__ == "__main__":
    sys.exit(main())
