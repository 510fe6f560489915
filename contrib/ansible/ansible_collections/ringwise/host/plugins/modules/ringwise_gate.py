#!/usr/bin/python
# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

DOCUMENTATION = r"""
module: ringwise_gate
short_description: Decide whether a host on trial may be confirmed
description:
  - Checks the document of C(ringwise verify), and compares drops and latency with other hosts.
  - It reads values that other tasks have measured, and does not contact a host. Run it with C(delegate_to=localhost).
  - The task fails if the host does not pass, and returns the account.
author: the ringwise developers (@ringwise)
version_added: "0.2.0"
options:
  host:
    description:
      - Measured values of the host. C(verify) and C(watch) are documents of M(ringwise.host.ringwise_facts).
        C(latency_us), or C(median_us) of M(ringwise.host.ringwise_probe), is a time in microseconds. Each is optional.
    type: dict
    required: true
  others:
    description:
      - Measured values of hosts that are not tuned yet, or of this host before the change, in the same form.
      - The values of one host may be spread over several elements.
    type: list
    elements: dict
    default: []
  drop_factor:
    description: The share of dropped packets may be this many times the median of O(others).
    type: float
    default: 1.5
  drop_floor_ppm:
    description: A share of dropped packets up to this value passes, in parts per million.
    type: float
    default: 10
  latency_factor:
    description: The latency may be this many times the median of O(others).
    type: float
    default: 1.5
  latency_floor_us:
    description: A latency up to this value passes, in microseconds.
    type: float
    default: 200
  require_comparison:
    description: Fail if drops or latency cannot be compared, for example because no packet was counted.
    type: bool
    default: false
attributes:
  check_mode:
    description: The module changes nothing.
    support: full
"""

EXAMPLES = r"""
- name: Decide
  ringwise.host.ringwise_gate:
    host:
      verify: "{{ ansible_facts.ringwise.verify }}"
      latency_us: "{{ probe.median_us }}"
    others:
      - latency_us: "{{ other_probe.median_us }}"
  delegate_to: localhost
"""

RETURN = r"""
account:
  description: Findings of verify, the counted drops, and each comparison with its limit.
  type: dict
  returned: always
reasons:
  description: The reasons why the host did not pass, and comparisons that could not be made.
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ringwise.host.plugins.module_utils import gate


def measured(values):
    """The values of one host. Templates may have made text of a number."""
    latency = values.get("latency_us", values.get("median_us"))
    return dict(values, latency_us=None if latency in (None, "") else float(latency))


def main():
    module = AnsibleModule(
        argument_spec=dict(
            host={"type": "dict", "required": True},
            others={"type": "list", "elements": "dict", "default": []},
            drop_factor={"type": "float", "default": 1.5},
            drop_floor_ppm={"type": "float", "default": 10},
            latency_factor={"type": "float", "default": 1.5},
            latency_floor_us={"type": "float", "default": 200},
            require_comparison={"type": "bool", "default": False},
        ),
        supports_check_mode=True,
    )
    params = module.params
    account = gate.judge(measured(params["host"]), [measured(o) for o in params["others"]], params)
    reasons = gate.reasons(account)
    if not account["passed"]:
        module.fail_json(msg="the host does not pass: " + "; ".join(reasons), account=account, reasons=reasons)
    module.exit_json(changed=False, account=account, reasons=reasons)


if __name__ == "__main__":
    main()
