#!/usr/bin/python
# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

DOCUMENTATION = r"""
module: ringwise_probe
short_description: Measure the time to open a TCP connection
description:
  - Opens connections one after the other, closes each at once, and returns the times in microseconds.
  - The kernel of the other host answers the handshake, so no program of it delays the answer.
  - Run it on the controller, with C(delegate_to), to compare hosts as one client sees them.
author: the ringwise developers (@ringwise)
version_added: "0.2.0"
options:
  host:
    description: Name or address to connect to.
    type: str
    required: true
  port:
    description: TCP port on which a program of the host listens.
    type: int
    default: 22
  count:
    description: Number of connections, at most 1000.
    type: int
    default: 20
  pause_ms:
    description: Pause between two connections in milliseconds.
    type: int
    default: 100
  timeout:
    description: Time limit of each connection in seconds.
    type: int
    default: 5
attributes:
  check_mode:
    description: The module changes nothing, and measures in check mode too.
    support: full
"""

EXAMPLES = r"""
- name: Measure the host from the controller
  ringwise.host.ringwise_probe:
    host: "{{ ansible_host }}"
  delegate_to: localhost
  register: probe
"""

RETURN = r"""
median_us:
  description: Median time in microseconds.
  type: float
  returned: success
min_us:
  description: Shortest time in microseconds.
  type: float
  returned: success
max_us:
  description: Longest time in microseconds.
  type: float
  returned: success
count:
  description: Number of connections.
  type: int
  returned: success
"""

import socket
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.ringwise.host.plugins.module_utils import gate


def measure(address, family, timeout):
    """Microseconds until the connection is open. Raises OSError if it cannot be opened."""
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        begin = time.perf_counter()
        connection.connect(address)
        return (time.perf_counter() - begin) * 1e6


def main():
    module = AnsibleModule(
        argument_spec=dict(
            host={"type": "str", "required": True},
            port={"type": "int", "default": 22},
            count={"type": "int", "default": 20},
            pause_ms={"type": "int", "default": 100},
            timeout={"type": "int", "default": 5},
        ),
        supports_check_mode=True,
    )
    params = module.params
    if not 1 <= params["count"] <= 1000:
        module.fail_json(msg="count: expected 1 to 1000, found %s" % params["count"])
    times = []
    try:
        found = socket.getaddrinfo(params["host"], params["port"], type=socket.SOCK_STREAM)
        family, address = found[0][0], found[0][4]
        for n in range(params["count"]):
            if n:
                time.sleep(params["pause_ms"] / 1000.0)
            times.append(measure(address, family, params["timeout"]))
    except OSError as e:
        module.fail_json(
            msg="%s port %s: connection %s failed: %s" % (params["host"], params["port"], len(times) + 1, e)
        )
    module.exit_json(
        changed=False, count=len(times), median_us=gate.median(times), min_us=min(times), max_us=max(times)
    )


if __name__ == "__main__":
    main()
