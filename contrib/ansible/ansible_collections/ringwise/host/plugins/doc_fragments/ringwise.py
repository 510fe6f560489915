# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations


class ModuleDocFragment:
    """Options that several modules share."""

    PROGRAM = r"""
options:
  executable:
    description:
      - Name or path of the program on the managed host.
      - C(/usr/local/sbin) and C(/usr/sbin) are searched as well as C(PATH).
    type: str
    default: ringwise
  state_dir:
    description: Directory of the record of transactions. The program's default is C(/var/lib/ringwise).
    type: path
"""

    REQUEST = r"""
options:
  interfaces:
    description: Interfaces to tune. By default, all that have a driver, queues of their own and a link.
    type: list
    elements: str
    default: []
  goal:
    description:
      - What the host is for.
      - The default is the goal of the configuration file, else C(balanced). An earlier goal is not remembered.
    type: str
    choices: [auto, balanced, forward, rpc, stream, latency, mixed]
  config:
    description: Configuration file on the managed host, or C(none). The program's default is C(/etc/ringwise/ringwise.toml).
    type: path
  override_config:
    description: Let O(goal) override the goals of the configuration file.
    type: bool
    default: false
  set:
    description:
      - Single keys of the configuration, such as V(eth1.rings.rx) with the value V(1024).
    type: dict
    default: {}
  cpus:
    description: List of the CPUs that may be used, such as V(0-7), even if they are isolated.
    type: str
  reserve:
    description: List of CPUs that are kept free of queues.
    type: str
  exclude_cpus:
    description: List of CPUs that are never used.
    type: str
  queues:
    description: Number of queues of each interface. A change of this number interrupts traffic.
    type: int
  latency_queues:
    description: Number of queues in the latency group of the goal C(mixed).
    type: int
  smt:
    description: Hardware threads of a core that take interrupts.
    type: str
    choices: [one-per-core, all]
  far_node:
    description: Use of CPUs on remote NUMA nodes.
    type: str
    choices: [never, last, ok]
  pair_as_article:
    description: Make queue groups for latency and bulk, half of the queues on the remote node.
    type: bool
    default: false
  allow_disruption:
    description: Include changes that interrupt traffic.
    type: bool
    default: false
  strict:
    description: Fail if a configured setting is not possible on this host, instead of reporting it in the plan.
    type: bool
    default: false
  take_over:
    description: Overwrite manual changes.
    type: bool
    default: false
"""
