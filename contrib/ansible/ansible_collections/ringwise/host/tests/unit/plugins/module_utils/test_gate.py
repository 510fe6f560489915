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


@pytest.mark.parametrize("codes", [[], ["stuck"], ["interrupts_elsewhere", "polled_elsewhere"]])
def test_findings_of_counted_queues(codes):
    doc = verified()
    doc["counted"]["queues"][0]["findings"] = codes
    findings = gate.verify_findings(doc)
    assert [f["code"] for f in findings] == codes
    assert all(f["dev"] == "eth0" and f["queue"] == "rx-0" for f in findings)


@pytest.mark.parametrize("how, findings", [("pending", 0), ("adjusted", 0), ("differs", 1), ("gone", 1)])
def test_pending_and_rounded_settings_count_as_applied(how, findings):
    doc = verified()
    doc["settings"][0]["how"] = how
    assert len(gate.verify_findings(doc)) == findings


def test_a_reason_that_this_collection_does_not_know_is_a_finding():
    assert gate.verify_findings(dict(verified(), attention=["trial_pending", "later"])) == [{"code": "later"}]


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
