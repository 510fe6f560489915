# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

"""Decides whether a tuned host may be confirmed. Values in, findings out: nothing is read here."""

from __future__ import annotations

# Settings that count as applied: pending ones take effect with the next interrupt, the driver rounded adjusted ones.
AS_APPLIED = ("same", "pending", "adjusted")

# Reasons for attention that the findings list one by one, and the trial, which the gate decides about.
LISTED = (
    "trial_pending",
    "settings_changed",
    "settings_unknown",
    "unfinished",
    "journal_unreadable",
    "queue_findings",
)

DROP_PLACES = ("nic", "no_buffer", "stack", "tx", "qdisc")


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
        place = {k: queue[k] for k in ("dev", "queue", "planned", "seen_on", "stuck", "polled_on") if k in queue}
        findings.extend(dict(place, code=code) for code in queue["findings"])
    # A later version may have further reasons.
    findings.extend({"code": code} for code in doc["attention"] if code not in LISTED)
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
