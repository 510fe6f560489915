# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

"""Decides whether a tuned host may be confirmed. Values in, findings out: nothing is read here."""

from __future__ import annotations

# Settings that count as applied: pending ones take effect with the next interrupt, the driver rounded adjusted ones.
AS_APPLIED = ("same", "pending", "adjusted")

DROP_PLACES = ("nic", "no_buffer", "stack", "tx", "qdisc")


def cpu_set(text):
    """The CPUs of a list such as 0-3,8."""
    cpus = set()
    for part in filter(None, (text or "").split(",")):
        first, dash, last = part.partition("-")
        cpus.update(range(int(first), int(last if dash else first) + 1))
    return cpus


def verify_findings(doc):
    """What differs from the applied state, of a document ringwise.verify. The trial itself is no finding."""
    findings = []
    if not doc["settings"]:
        findings.append({"code": "nothing_applied"})
    for setting in doc["settings"]:
        if setting["how"] not in AS_APPLIED:
            code = setting["how"] if isinstance(setting["how"], str) else "unknown"
            findings.append({"code": code, "setting": setting["want"], "now": setting["now"]})
    if doc.get("unfinished") is not None:
        findings.append({"code": "unfinished", "transaction": doc["unfinished"]})
    for newer in doc.get("newer", []):
        findings.append({"code": "unreadable", "transaction": newer["transaction"], "why": newer["why"]})
    for queue in doc.get("counted", {}).get("queues", []):
        place = {"dev": queue["dev"], "queue": queue["queue"], "planned": queue["planned"]}
        if queue["seen_on"] and not cpu_set(queue["seen_on"]) <= cpu_set(queue["planned"]):
            findings.append(dict(place, code="interrupts_elsewhere", seen_on=queue["seen_on"]))
        if queue.get("stuck"):
            findings.append(dict(place, code="stuck", stuck=queue["stuck"]))
        if queue.get("polled"):
            findings.append(dict(place, code="polled_elsewhere", polled_on=queue.get("polled_on")))
    return findings


def drops(doc):
    """Dropped packets of a document ringwise.watch: a count, packets, parts per million, and counters that are unknown.

    ppm is None if no packet was counted.
    """
    dropped, packets, unknown = 0, 0, []
    for dev, link in sorted(doc["links"].items()):
        for place in DROP_PLACES:
            if link["drops"][place] is None:
                unknown.append("%s %s" % (dev, place))
            else:
                dropped += link["drops"][place]
        for direction in ("rx", "tx"):
            if link[direction]["packets"] is None:
                unknown.append("%s %s packets" % (dev, direction))
            else:
                packets += link[direction]["packets"]
    seen = packets + dropped
    ppm = 1e6 * dropped / seen if seen else None
    return {"dropped": dropped, "packets": packets, "ppm": ppm, "unknown": unknown}


def median(values):
    """The median, or None without a value."""
    values = sorted(values)
    if not values:
        return None
    middle = len(values) // 2
    if len(values) % 2:
        return values[middle]
    return (values[middle - 1] + values[middle]) / 2.0


def compared(name, value, others, factor, floor):
    """Compares a value with the median of the others. The limit is factor times the median, and at least the floor.

    Without a value or without others nothing can be compared, and the result is undecided.
    """
    others = [v for v in others if v is not None]
    reference = median(others)
    result = {"name": name, "value": value, "reference": reference, "compared_with": len(others)}
    if value is None or reference is None:
        result["result"] = "undecided"
        return result
    result["limit"] = max(factor * reference, floor)
    result["result"] = "passed" if value <= result["limit"] else "failed"
    return result


def judge(host, others, limits):
    """The account of one host: findings of verify, and drops and latency compared with other hosts.

    host, others: dicts with verify and watch (documents) and latency_us (microseconds), each optional.
    """
    account = {"findings": [], "comparisons": [], "passed": True}
    if host.get("verify") is not None:
        account["findings"] = verify_findings(host["verify"])
    if host.get("watch") is not None:
        account["drops"] = drops(host["watch"])
        rates = [drops(o["watch"])["ppm"] for o in others if o.get("watch") is not None]
        account["comparisons"].append(
            compared("drops_ppm", account["drops"]["ppm"], rates, limits["drop_factor"], limits["drop_floor_ppm"])
        )
    if host.get("latency_us") is not None:
        latencies = [o.get("latency_us") for o in others]
        account["comparisons"].append(
            compared("latency_us", host["latency_us"], latencies, limits["latency_factor"], limits["latency_floor_us"])
        )
    failing = ("failed", "undecided") if limits.get("require_comparison") else ("failed",)
    account["passed"] = not account["findings"] and all(c["result"] not in failing for c in account["comparisons"])
    return account


def reasons(account):
    """The reasons why a host did not pass, one line each."""
    lines = []
    for f in account["findings"]:
        place = " ".join(str(f[k]) for k in ("dev", "queue") if f.get(k) is not None)
        if "setting" in f:
            place = " ".join(str(f["setting"][k]) for k in ("dev", "knob") if f["setting"].get(k))
        lines.append((place + ": " if place else "") + f["code"])
    for c in account["comparisons"]:
        if c["result"] == "failed":
            lines.append("%s: %.1f, expected at most %.1f" % (c["name"], c["value"], c["limit"]))
        elif c["result"] == "undecided":
            lines.append("%s: nothing to compare" % c["name"])
    return lines
