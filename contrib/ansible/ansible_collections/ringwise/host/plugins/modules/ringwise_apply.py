#!/usr/bin/python
# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

DOCUMENTATION = r"""
module: ringwise_apply
short_description: Tune the network interfaces of a host in one transaction
description:
  - Runs C(ringwise apply). It makes all changes or none, and reads every value back.
  - The task changes something only if the plan has steps. A second run with the same request changes nothing.
  - Any exit status other than 0 fails the task. Partial success (status 3) fails it too.
  - Manual changes are kept unless O(take_over=true).
author: the ringwise developers (@ringwise)
version_added: "0.2.0"
extends_documentation_fragment:
  - ringwise.host.ringwise.program
  - ringwise.host.ringwise.request
options:
  plan_file:
    description:
      - File of C(ringwise plan --out) on the managed host, which is applied exactly or refused.
      - Check mode reports the steps in the file, also those that were made already.
    type: path
  confirm:
    description:
      - Apply on trial for this time, such as V(60s) or V(5m). Unless M(ringwise.host.ringwise_confirm) runs within it,
        the host restores everything, even if the controller can no longer reach it.
    type: str
  health:
    description: Command for C(sh -c) on the managed host. Status 0 confirms the trial, any other restores everything.
    type: str
  force:
    description: Allow changes that interrupt the ssh session, the default route or network mounts. Needs O(confirm).
    type: bool
    default: false
  watch:
    description: Watch the transmit queues for this time, and restore everything if one stalls. V(0) turns it off.
    type: str
  reason:
    description: Reason that is recorded in the history of the host.
    type: str
attributes:
  check_mode:
    description: Returns the plan and changes nothing.
    support: full
  diff_mode:
    description: Returns the diff of the plan.
    support: full
seealso:
  - module: ringwise.host.ringwise_confirm
"""

EXAMPLES = r"""
- name: Tune a router on trial
  ringwise.host.ringwise_apply:
    goal: forward
    confirm: 2m
  register: tuned

- name: Keep the changes
  ringwise.host.ringwise_confirm:
    transaction: "{{ tuned.transaction }}"
  when: tuned.on_trial
"""

RETURN = r"""
outcome:
  description:
    - The document C(ringwise.outcome) version 1, also if the task failed.
    - Null if the program was refused or failed before it began (status 1, 2 and 6). The reason is in RV(error).
  type: dict
  returned: except in check mode
plan:
  description: The document C(ringwise.plan) version 2.
  type: dict
  returned: in check mode
impossible:
  description: Settings that are not possible on this host, from C(refused) of the plan, each with the reason.
  type: list
  elements: dict
  returned: if the transaction failed or is incomplete
steps:
  description: Number of changes in the plan that was made before.
  type: int
  returned: always
transaction:
  description: Number of the transaction. Null if there was nothing to do.
  type: int
  returned: success
on_trial:
  description: Whether the transaction must be confirmed.
  type: bool
  returned: success
not_planned:
  description: Requested settings that were skipped because they interrupt traffic.
  type: list
  elements: str
  returned: success
rc:
  description: Exit status of the program.
  type: int
  returned: always
error:
  description:
    - The document C(ringwise.error) version 1. Its C(code) is stable, such as V(on_trial), V(locked) or V(changed).
  type: dict
  returned: if the program was refused or failed before it began
stderr:
  description: Errors of the program.
  type: str
  returned: if there are any
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ringwise.host.plugins.module_utils import program

REQUEST = sorted(program.request_spec())


def arguments(params):
    """The arguments of apply without --yes and --dry-run."""
    args = []
    for name, option in (("plan_file", "plan"), ("confirm", "confirm"), ("health", "health"), ("watch", "watch")):
        if params[name] is not None:
            args.append("--%s=%s" % (option, params[name]))
    if params["reason"] is not None:
        args.append("--reason=" + params["reason"])
    if params["force"]:
        args.append("--force")
    return args + program.request_args(params)


def main():
    spec = dict(
        program.common_spec(),
        plan_file={"type": "path"},
        confirm={"type": "str"},
        health={"type": "str"},
        force={"type": "bool", "default": False},
        watch={"type": "str"},
        reason={"type": "str"},
        **program.request_spec()
    )
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    params = module.params
    if params["plan_file"]:
        named = [name for name in REQUEST if params[name] not in (None, False, [], {})]
        if named:
            module.fail_json(msg="plan_file holds the whole request: remove %s" % ", ".join(named))
    if params["force"] and not params["confirm"]:
        module.fail_json(msg="force needs confirm: changes that interrupt the connection are made on trial only")
    ringwise = program.Program(module).required()
    args = arguments(params)

    # With --yes the plan keeps manual changes, as the transaction does.
    dry_run = ["--yes", "--dry-run"] + args
    answer = ringwise.read("apply", dry_run, "ringwise.plan")
    plan = answer.document
    result = {"steps": len(plan["steps"]), "not_planned": program.requested_but_skipped(plan)}
    if result["not_planned"]:
        module.warn(
            "requested, but skipped because it interrupts traffic without allow_disruption: "
            + ", ".join(result["not_planned"])
        )
    # A second run has no step, and repeats nothing.
    for report in program.competing_programs(plan) if plan["steps"] else []:
        module.warn(report)
    diff = {"prepared": ringwise.diff("apply", dry_run)} if module._diff and plan["steps"] else None
    if module.check_mode:
        if diff:
            result["diff"] = diff
        result.update(answer.account())
        module.exit_json(changed=bool(plan["steps"]), plan=plan, transaction=None, on_trial=False, **result)

    answer = ringwise.run("apply", ["--yes"] + args, "ringwise.outcome")
    outcome = answer.document
    changed = bool(outcome and outcome["changed"])
    if diff and changed:
        result["diff"] = diff
    if answer.rc != program.OK or outcome is None:
        # The outcome does not list requested settings that cannot be set at all: those are in the plan alone.
        ringwise.fail("apply", answer, changed=changed, outcome=outcome, impossible=plan["refused"], **result)
    result.update(answer.account())
    module.exit_json(
        changed=changed,
        outcome=outcome,
        transaction=outcome.get("transaction"),
        on_trial=outcome.get("trial", {}).get("fate") == "pending",
        **result
    )


if __name__ == "__main__":
    main()
