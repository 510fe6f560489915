#!/usr/bin/python
# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

DOCUMENTATION = r"""
module: ringwise_confirm
short_description: Keep changes of ringwise that are on trial
description:
  - Runs C(ringwise confirm).
  - The task fails if nothing is on trial (status 6), or if the confirmation is too late (status 4 and 5).
    Skip it if M(ringwise.host.ringwise_apply) had nothing to do, with C(when).
author: the ringwise developers (@ringwise)
version_added: "0.2.0"
extends_documentation_fragment:
  - ringwise.host.ringwise.program
options:
  transaction:
    description:
      - Number of the transaction to confirm, as M(ringwise.host.ringwise_apply) returned it.
      - The task fails if another transaction is on trial.
    type: int
attributes:
  check_mode:
    description: Reports whether a trial would be confirmed.
    support: full
"""

EXAMPLES = r"""
- name: Keep the changes
  ringwise.host.ringwise_confirm:
    transaction: "{{ tuned.transaction }}"
  when: tuned.on_trial
"""

RETURN = r"""
outcome:
  description: The document C(ringwise.outcome) version 1, also if the changes were restored.
  type: dict
  returned: if the program printed one
error:
  description: The document C(ringwise.error) version 1, for example with the C(code) V(nothing_on_trial).
  type: dict
  returned: if the program printed one
trial:
  description: The trial before the confirmation, as in C(ringwise.verify). Null if nothing was on trial.
  type: dict
  returned: always
rc:
  description: Exit status of the program.
  type: int
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ringwise.host.plugins.module_utils import program


def main():
    spec = dict(program.common_spec(), transaction={"type": "int"})
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    wanted = module.params["transaction"]
    ringwise = program.Program(module).required()
    answer = ringwise.read("status", [], "ringwise.status", (program.OK, program.NEEDS_ATTENTION))
    trial = (answer.document["verify"] or {}).get("trial")
    if trial and wanted is not None and trial["transaction"] != wanted:
        module.fail_json(
            msg="transaction %s is on trial, expected %s; nothing was confirmed" % (trial["transaction"], wanted),
            trial=trial,
            **answer.account()
        )
    if module.check_mode:
        # Ansible fails a result with another rc than 0, unless it has this key. 3 is expected during a trial.
        module.exit_json(failed=False, changed=trial is not None, trial=trial, **answer.account())

    answer = ringwise.run("confirm", [], "ringwise.outcome")
    outcome = answer.document
    if answer.rc != program.OK or outcome is None:
        # Too late: the host has restored the values, without this task.
        ringwise.fail("confirm", answer, changed=False, outcome=outcome, trial=trial)
    changed = not outcome["already_confirmed"]
    if wanted is not None and outcome.get("transaction") != wanted:
        module.fail_json(
            msg="transaction %s is confirmed, expected %s" % (outcome.get("transaction"), wanted),
            outcome=outcome,
            trial=trial,
            changed=changed,
            **answer.account()
        )
    module.exit_json(changed=changed, outcome=outcome, trial=trial, **answer.account())


if __name__ == "__main__":
    main()
