# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import socket

import pytest

from ansible_collections.ringwise.host.tests.fake.scenarios import (
    answer,
    confirmed,
    document,
    error,
    failed,
    status,
    text,
    verified,
    watched,
)


def test_plan_reports_steps_and_changes_nothing(host):
    host.answers(plan=answer(document("plan"), rc=3), plan_diff=answer(stdout=text("plan.diff")))
    result = host.run("ringwise_plan", diff=True, capture="/caps/a.tar.gz", interfaces=["eth0"])
    assert not result["changed"] and not result["complete"] and result["steps"] == 6
    assert result["rc"] == 3 and result["failed"] is False
    assert result["diff"]["prepared"] == text("plan.diff")
    assert [c[-3:] for c in host.calls()] == [["--from=/caps/a.tar.gz", "--", "eth0"]] * 2


def test_plan_without_steps_that_skips_a_request_is_not_complete(host):
    plan = dict(document("plan_skipped"), steps=[])
    host.answers(plan=answer(plan, rc=3))
    result = host.run("ringwise_plan")
    assert not result["complete"] and result["steps"] == 0 and result["not_planned"] == ["eth1 rings"]


def test_plan_fails_with_the_message_of_the_program(host):
    host.answers(plan=error("unknown_device", rc=1, message="there is no interface"))
    result = host.run("ringwise_plan")
    assert result["failed"] and result["rc"] == 1 and "there is no interface" in result["msg"]
    assert result["error"]["code"] == "unknown_device"


def test_confirm_keeps_the_trial(host):
    host.answers(status=answer(status(7), rc=3), confirm=answer(confirmed(7)))
    result = host.run("ringwise_confirm", transaction=7)
    assert result["changed"] and result["trial"]["transaction"] == 7
    assert result["outcome"]["trial"]["fate"] == {"confirmed": {"by": "root"}}


def test_confirm_in_check_mode_confirms_nothing(host):
    host.answers(status=answer(status(7), rc=3))
    result = host.run("ringwise_confirm", check=True)
    assert result["changed"] and result["failed"] is False
    host.answers(status=answer(status()))
    assert not host.run("ringwise_confirm", check=True)["changed"]
    assert host.calls("confirm") == []


def test_confirm_refuses_another_transaction(host):
    host.answers(status=answer(status(8), rc=3))
    result = host.run("ringwise_confirm", transaction=7)
    assert result["failed"] and "transaction 8 is on trial, expected 7" in result["msg"]
    assert host.calls("confirm") == []


def test_a_transaction_that_was_confirmed_before_is_no_change(host):
    host.answers(status=answer(status()), confirm=answer(confirmed(7, already=True)))
    assert not host.run("ringwise_confirm", transaction=7)["changed"]
    assert host.run("ringwise_confirm", transaction=6)["failed"]


@pytest.mark.parametrize("rc, doc", [(4, failed()), (5, failed("put_back_incomplete")), (6, None), (3, None)])
def test_a_confirmation_that_is_too_late_fails(host, rc, doc):
    host.answers(status=answer(status()), confirm=answer(doc, rc=rc, stderr="error: too late\n"))
    result = host.run("ringwise_confirm")
    assert result["failed"] and result["rc"] == rc and result["outcome"] == doc and not result["changed"]


def capture_document():
    return {
        "schema": "ringwise.capture",
        "version": 1,
        "file": "x",
        "answers": 3,
        "interfaces": 1,
        "redacted": [],
    }


def test_capture_records_once(host, tmp_path):
    host.answers(capture=answer(capture_document(), file="recorded"))
    dest = tmp_path / "host.tar.gz"
    assert host.run("ringwise_capture", dest=str(dest), check=True)["changed"]
    assert not dest.exists() and host.calls() == []
    first = host.run("ringwise_capture", dest=str(dest), redact=True, duration="5s")
    assert first["changed"] and first["capture"]["file"] == str(dest) and dest.read_text() == "recorded"
    assert host.calls()[0][:5] == ["capture", "--json", "--quiet", "--redact", "--for=5s"]
    assert not host.run("ringwise_capture", dest=str(dest))["changed"]
    assert host.run("ringwise_capture", dest=str(dest), force=True)["changed"]
    assert sorted(os.listdir(tmp_path)) == ["fake", "host.tar.gz"]


def test_a_capture_that_fails_leaves_the_file(host, tmp_path):
    host.answers(capture=answer(rc=1, stderr="error: ENOSPC\n"))
    dest = tmp_path / "host.tar.gz"
    dest.write_text("before")
    result = host.run("ringwise_capture", dest=str(dest), force=True)
    assert result["failed"] and "ENOSPC" in result["msg"] and dest.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["fake", "host.tar.gz"]


def test_facts_of_a_host_that_needs_attention(host):
    host.answers(
        status=answer(status(1), rc=3),
        check=answer(document("check")),
        verify=answer(verified(), rc=3),
        watch=answer(watched()),
    )
    result = host.run("ringwise_facts", gather=["status", "check", "verify", "watch"], duration="2s", goal="rpc")
    facts = result["ansible_facts"]["ringwise"]
    assert not result["changed"] and facts["installed"] and facts["needs_attention"]
    assert facts["statuses"] == {"status": 3, "check": 0, "verify": 3, "watch": 0}
    assert facts["verify"]["counted"]["seconds"] == 1.0
    assert [c[3:] for c in host.calls()] == [
        [],
        ["--for=2s", "--goal=rpc"],
        ["--for=2s"],
        ["--count=1", "--interval=2s"],
    ]


def test_facts_without_the_program(host):
    result = host.run("ringwise_facts", executable="/nonexistent/ringwise")
    assert result["ansible_facts"]["ringwise"] == {"installed": False}


def test_facts_fail_if_the_host_cannot_be_read(host):
    host.answers(status=answer(rc=1, stderr="error: EACCES\n"))
    assert host.run("ringwise_facts")["failed"]


def test_gate_fails_with_the_account(host):
    values = {"verify": verified(ok=False), "watch": watched(dropped=5000), "latency_us": 150.0}
    result = host.run("ringwise_gate", host=values, others=[{"watch": watched(), "latency_us": 140.0}])
    assert result["failed"] and result["account"]["drops"]["dropped"] == 5000
    assert "eth0 rx-0: interrupts_elsewhere" in result["reasons"]


def test_gate_passes(host):
    values = {"verify": verified(), "watch": watched(), "latency_us": "150.0"}
    result = host.run("ringwise_gate", host=values, others=[{"watch": watched(), "latency_us": 140}])
    assert result["account"]["passed"] and result["reasons"] == []


def test_probe_measures_and_reports_a_closed_port(host):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = host.run("ringwise_probe", host="127.0.0.1", port=port, count=3, pause_ms=0)
    assert 0 < result["min_us"] <= result["median_us"] <= result["max_us"] and result["count"] == 3
    result = host.run("ringwise_probe", host="127.0.0.1", port=port, count=3)
    assert result["failed"] and "connection 1 failed" in result["msg"]
