#!/usr/bin/python
# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

DOCUMENTATION = r"""
module: ringwise_plan
short_description: Show what ringwise would change on a host, and why
description:
  - Runs C(ringwise plan) and returns its JSON document. Nothing is changed.
author: the ringwise developers (@ringwise)
version_added: "0.2.0"
extends_documentation_fragment:
  - ringwise.host.ringwise.program
  - ringwise.host.ringwise.request
options:
  capture:
    description: Plan for the host that was recorded in this file, instead of the managed host.
    type: path
attributes:
  check_mode:
    description: The module changes nothing.
    support: full
seealso:
  - module: ringwise.host.ringwise_apply
"""

EXAMPLES = r"""
- name: Plan for a router
  ringwise.host.ringwise_plan:
    goal: forward
  register: tuning

- name: Show the reason of each step
  ansible.builtin.debug:
    msg: "{{ tuning.plan.steps | map(attribute='reason.text') }}"
"""

RETURN = r"""
plan:
  description: The document C(ringwise.plan) version 2.
  type: dict
  returned: success
steps:
  description: Number of changes that apply would make.
  type: int
  returned: success
complete:
  description: Whether the host is as requested. False if there are steps, or if a requested setting is not planned.
  type: bool
  returned: success
not_planned:
  description: Requested settings that the plan skips because they interrupt traffic.
  type: list
  elements: str
  returned: success
rc:
  description: Exit status of the program. 3 means that the host is not as requested.
  type: int
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ringwise.host.plugins.module_utils import program


def main():
    spec = dict(program.common_spec(), capture={"type": "path"}, **program.request_spec())
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    ringwise = program.Program(module).required()
    args = ["--exit-code"]
    if module.params["capture"]:
        args.append("--from=" + module.params["capture"])
    request = program.request_args(module.params)
    answer = ringwise.read("plan", args + request, "ringwise.plan", (program.OK, program.NEEDS_ATTENTION))
    plan = answer.document
    result = answer.account()
    result.update(
        # Ansible fails a result with another rc than 0, unless it has this key.
        failed=False,
        changed=False,
        plan=plan,
        steps=len(plan["steps"]),
        complete=answer.rc == program.OK,
        not_planned=program.requested_but_skipped(plan),
    )
    if module._diff and plan["steps"]:
        result["diff"] = {"prepared": ringwise.diff("plan", args[1:] + request)}
    module.exit_json(**result)


if __name__ == "__main__":
    main()
