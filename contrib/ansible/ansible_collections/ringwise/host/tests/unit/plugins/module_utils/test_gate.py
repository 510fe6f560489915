# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import pytest

from ansible_collections.ringwise.host.plugins.module_utils import gate
from ansible_collections.ringwise.host.tests.fake.scenarios import document, verified, watched

LIMITS = {"drop_factor": 1.5, "drop_floor_ppm": 10, "latency_factor": 1.5, "latency_floor_us": 200}


def test_a_trial_alone_is_no_finding():
    doc = verified()
    assert doc["trial"]["fate"] == "pending"
    assert gate.verify_findings(doc) == []


def test_settings_that_differ_are_findings():
    findings = gate.verify_findings(document("verify"))
    assert {f["code"] for f in findings} == {"differs"}
    assert findings[0]["setting"]["dev"] == "eth0"


@pytest.mark.parametrize(
    "change, code",
    [
        ({"seen_on": "0-1"}, "interrupts_elsewhere"),
        ({"stuck": {"how": "timed_out", "times": 1}}, "stuck"),
        ({"polled": True, "polled_on": 3}, "polled_elsewhere"),
    ],
)
def test_findings_of_counted_queues(change, code):
    doc = verified()
    doc["counted"]["queues"][0].update(change)
    assert [f["code"] for f in gate.verify_findings(doc)] == [code]


@pytest.mark.parametrize("how, findings", [("pending", 0), ("adjusted", 0), ("differs", 1), ("gone", 1)])
def test_pending_and_rounded_settings_count_as_applied(how, findings):
    doc = verified()
    doc["settings"][0]["how"] = how
    assert len(gate.verify_findings(doc)) == findings


@pytest.mark.parametrize("seen_on", [None, "", "0"])
def test_a_queue_without_interrupts_or_on_its_cpu_is_no_finding(seen_on):
    doc = verified()
    doc["counted"]["queues"][0]["seen_on"] = seen_on
    assert gate.verify_findings(doc) == []


def test_other_findings_of_verify():
    doc = verified()
    doc["settings"][0]["how"] = {"unknown": {"what": "x", "why": "y"}}
    doc["unfinished"] = 3
    doc["newer"] = [{"transaction": 4, "why": "damaged", "path": "/x", "undo": []}]
    assert [f["code"] for f in gate.verify_findings(doc)] == ["unknown", "unfinished", "unreadable"]
    assert gate.verify_findings(dict(verified(), settings=[])) == [{"code": "nothing_applied"}]


def test_drops_are_counted_by_place_and_unknown_ones_are_named():
    doc = watched(packets=990, dropped=10)
    assert gate.drops(doc)["ppm"] == 10000.0
    doc["links"]["eth0"]["drops"]["qdisc"] = None
    assert gate.drops(doc)["unknown"] == ["eth0 qdisc"]
    assert gate.drops(watched(packets=0))["ppm"] is None


def test_the_limit_is_a_multiple_of_the_others_and_at_least_the_floor():
    assert gate.compared("x", 29, [10, 20, 30], 1.5, 5)["result"] == "passed"
    assert gate.compared("x", 31, [10, 20, 30], 1.5, 5)["result"] == "failed"
    assert gate.compared("x", 4, [0, 0], 1.5, 5)["result"] == "passed"
    assert gate.compared("x", 4, [None], 1.5, 5)["result"] == "undecided"
    assert gate.compared("x", None, [1], 1.5, 5)["result"] == "undecided"


def test_what_cannot_be_compared_passes_unless_a_comparison_is_required():
    host = {"verify": verified(), "watch": watched(packets=0)}
    assert gate.judge(host, [], LIMITS)["passed"]
    account = gate.judge(host, [], dict(LIMITS, require_comparison=True))
    assert not account["passed"] and gate.reasons(account) == ["drops_ppm: nothing to compare"]


def test_cpu_lists():
    assert gate.cpu_set("0-2,8") == {0, 1, 2, 8}
    assert gate.cpu_set("") == gate.cpu_set(None) == set()
