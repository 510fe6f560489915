#!/usr/bin/python
# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

DOCUMENTATION = r"""
module: ringwise_facts
short_description: Read what ringwise knows about a host
description:
  - Returns JSON documents of ringwise as facts, below C(ansible_facts.ringwise).
  - A host that needs attention (status 3) does not fail the task. Its documents show why.
  - Nothing is changed.
author: the ringwise developers (@ringwise)
version_added: "0.2.0"
extends_documentation_fragment:
  - ringwise.host.ringwise.program
options:
  gather:
    description:
      - Documents to read.
      - V(status) has what is applied. V(check) has findings. V(verify) compares the host with what was applied.
        V(watch) counts packets and losses. V(show) has everything that was read, and may be large.
    type: list
    elements: str
    choices: [status, check, verify, watch, show]
    default: [status]
  interfaces:
    description: Interfaces for V(check), V(watch) and V(show). By default, all with queues of their own.
    type: list
    elements: str
    default: []
  goal:
    description: Goal by which V(check) judges. The default is the applied goal.
    type: str
    choices: [auto, balanced, forward, rpc, stream, latency, mixed]
  duration:
    description:
      - Time during which V(verify) counts interrupts, V(watch) counts packets, and V(check) measures rates.
      - Without it V(verify) does not count, and the others use one second.
    type: str
attributes:
  check_mode:
    description: The module changes nothing.
    support: full
"""

EXAMPLES = r"""
- name: Read the state and the findings
  ringwise.host.ringwise_facts:
    gather: [status, check]

- name: Show hosts with errors
  ansible.builtin.debug:
    msg: "{{ ansible_facts.ringwise.check.first }}"
  when: ansible_facts.ringwise.check.findings | selectattr('severity', 'equalto', 'error') | length > 0
"""

RETURN = r"""
ansible_facts:
  description: Facts.
  type: dict
  returned: success
  contains:
    ringwise:
      description:
        - C(installed), and a document for each name in O(gather), such as C(ringwise.status).
        - C(needs_attention) is true if the exit status of C(status), C(check) or C(verify) is 3.
      type: dict
      returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ringwise.host.plugins.module_utils import program

SCHEMAS = {
    "status": "ringwise.status",
    "check": "ringwise.check",
    "verify": "ringwise.verify",
    "watch": "ringwise.watch",
    "show": "ringwise.snapshot",
}


def arguments(command, params):
    """The arguments of one command."""
    args = []
    duration = params["duration"]
    if command == "watch":
        args += ["--count=1", "--interval=" + (duration or "1s")]
    elif command in ("check", "verify") and duration:
        args.append("--for=" + duration)
    if command == "check" and params["goal"]:
        args.append("--goal=" + params["goal"])
    if command in ("check", "watch", "show") and params["interfaces"]:
        args += ["--"] + params["interfaces"]
    return args


def main():
    spec = dict(
        program.common_spec(),
        gather={"type": "list", "elements": "str", "choices": list(SCHEMAS), "default": ["status"]},
        interfaces={"type": "list", "elements": "str", "default": []},
        goal={
            "type": "str",
            "choices": ["auto", "balanced", "forward", "rpc", "stream", "latency", "mixed"],
        },
        duration={"type": "str"},
    )
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    ringwise = program.Program(module)
    facts = {"installed": ringwise.path is not None}
    if facts["installed"]:
        statuses = {}
        for command in module.params["gather"]:
            args = arguments(command, module.params)
            allowed = (program.OK, program.NEEDS_ATTENTION)
            answer = ringwise.read(command, args, SCHEMAS[command], allowed)
            facts[command] = answer.document
            statuses[command] = answer.rc
        facts["statuses"] = statuses
        facts["needs_attention"] = program.NEEDS_ATTENTION in statuses.values()
    module.exit_json(changed=False, ansible_facts={"ringwise": facts})


if __name__ == "__main__":
    main()
