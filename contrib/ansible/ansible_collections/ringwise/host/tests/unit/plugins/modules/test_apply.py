# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import pytest

from ansible_collections.ringwise.host.tests.fake.scenarios import (
    answer,
    document,
    error,
    failed,
    nothing_to_do,
    on_trial,
    text,
)

from ansible_collections.ringwise.host.tests.fake import scenarios


def test_check_mode_is_the_plan_and_applies_nothing(host):
    host.answers(dry_run=answer(document("plan")))
    result = host.run("ringwise_apply", check=True, goal="balanced")
    assert result["changed"] and result["steps"] == 6
    assert result["plan"]["schema"] == "ringwise.plan"
    assert [c for c in host.calls("apply") if "--dry-run" not in c] == []


def test_competing_programs_are_reported_before_the_first_change_only(host):
    plan = document("plan")
    plan["warnings"] = ["tuned (running) sets channels, and overwrites this plan"]
    for dev in ("eth1", "eth0"):
        setting = {"knob": "irqbalance_ban", "dev": dev, "left": "all"}
        plan["steps"].append(dict(plan["steps"][0], setting=setting))
    host.answers(dry_run=answer(plan))
    # A warning is a text, or since ansible-core 2.19 an object that holds it.
    warnings = [str(w) for w in host.run("ringwise_apply", check=True)["warnings"]]
    assert [w for w in warnings if plan["warnings"][0] in w]
    assert [w for w in warnings if "irqbalance" in w and "eth0, eth1" in w]
    # Ansible keeps the warnings of a process, so the second report is another text.
    host.answers(dry_run=answer(dict(plan, steps=[], warnings=["a second report"])))
    assert "a second report" not in str(host.run("ringwise_apply", check=True).get("warnings"))


def test_check_mode_without_steps_changes_nothing(host):
    host.answers(dry_run=answer(document("plan_nothing")))
    assert not host.run("ringwise_apply", check=True)["changed"]


@pytest.mark.parametrize("params", [{"goal": "rpc", "set": {"eth1.rings.rx": 1024}}, {"plan_file": "/root/edge.plan"}])
def test_diff_mode_has_the_diff_of_the_transaction(host, params):
    host.answers(dry_run=answer(document("plan")), diff=answer(stdout=text("plan.diff")))
    result = host.run("ringwise_apply", check=True, diff=True, **params)
    assert result["diff"] == {"prepared": text("plan.diff")}
    plan, diff = host.calls()
    assert [a for a in diff if a != "--output=diff"] == [a for a in plan if a != "--json"]


def test_a_second_run_changes_nothing(host):
    host.replays(scenarios.host())
    first = host.run("ringwise_apply", confirm="60s", diff=True)
    assert first["changed"] and first["on_trial"] and first["transaction"] == 1 and "diff" in first
    assert host.run("ringwise_confirm", transaction=1)["changed"]
    second = host.run("ringwise_apply", confirm="60s", diff=True)
    assert not second["changed"] and not second["on_trial"] and second["transaction"] is None
    assert "diff" not in second


@pytest.mark.parametrize("rc, verdict, changed", [(4, "put_back", False), (5, "put_back_incomplete", True)])
def test_a_rollback_fails_with_the_account(host, rc, verdict, changed):
    host.answers(dry_run=answer(document("plan")), apply=answer(failed(verdict), rc=rc))
    result = host.run("ringwise_apply")
    assert result["failed"] and result["rc"] == rc and result["changed"] is changed
    assert result["outcome"]["verdict"] == verdict
    assert "eth0 irq_cpus rx-0" in result["msg"] and "EINVAL" in result["msg"]


def test_partial_success_fails(host):
    plan = document("plan_nothing")
    host.answers(dry_run=answer(plan), apply=answer(document("outcome_partial"), rc=3))
    result = host.run("ringwise_apply")
    assert result["failed"] and result["rc"] == 3 and result["changed"]
    assert result["outcome"]["unmet"] == [{"xps_cpus": {"dev": "eth0", "queue": 5}}]
    assert result["impossible"] == plan["refused"] != []


def test_a_refusal_fails_without_an_outcome(host):
    refusal = error("on_trial", message="transaction 1 is on trial", facts={"transaction": 1}, next="ringwise confirm")
    host.answers(dry_run=answer(document("plan")), apply=refusal)
    result = host.run("ringwise_apply")
    assert result["failed"] and result["rc"] == 6 and not result["changed"]
    assert result["outcome"] is None and result["error"]["code"] == "on_trial"
    assert result["error"]["facts"] == {"transaction": 1}
    assert result["msg"].endswith(". transaction 1 is on trial. Try: ringwise confirm")


def test_an_error_of_another_version_is_refused(host):
    refusal = error("on_trial")
    refusal["stdout"] = refusal["stdout"].replace('"version": 1', '"version": 2')
    host.answers(dry_run=answer(document("plan")), apply=refusal)
    assert "found ringwise.error version 2" in host.run("ringwise_apply")["msg"]


def test_an_error_of_the_plan_fails_before_anything_is_applied(host):
    host.answers(dry_run=answer(rc=2, stderr="error: --goal\n"))
    result = host.run("ringwise_apply")
    assert result["failed"] and result["rc"] == 2
    assert len(host.calls()) == 1


def test_every_option_reaches_the_program(host):
    host.answers(dry_run=answer(document("plan")), apply=answer(on_trial()))
    host.run(
        "ringwise_apply",
        interfaces=["eth0", "eth1"],
        goal="rpc",
        config="/etc/ringwise/a.toml",
        override_config=True,
        set={"eth1.rings.rx": 1024, "eth1.features.gro": True},
        reserve="0",
        queues=4,
        smt="one-per-core",
        allow_disruption=True,
        force=True,
        confirm="2m",
        reason="a reason",
        state_dir="/tmp/state",
    )
    dry_run, apply = host.calls("apply")
    assert [a for a in dry_run if a != "--dry-run"] == apply
    assert apply == [
        "apply",
        "--json",
        "--quiet",
        "--state-dir=/tmp/state",
        "--yes",
        "--confirm=2m",
        "--reason=a reason",
        "--force",
        "--goal=rpc",
        "--config=/etc/ringwise/a.toml",
        "--reserve=0",
        "--queues=4",
        "--smt=one-per-core",
        "--override-config",
        "--allow-disruption",
        "--set=eth1.features.gro=true",
        "--set=eth1.rings.rx=1024",
        "--",
        "eth0",
        "eth1",
    ]


def test_a_requested_setting_that_interrupts_traffic_is_a_warning(host):
    host.answers(dry_run=answer(document("plan_skipped")), apply=answer(document("outcome_applied")))
    result = host.run("ringwise_apply", set={"eth1.rings.rx": 1024})
    assert result["not_planned"] == ["eth1 rings"]
    assert any("eth1 rings" in str(w) for w in result["warnings"])


def test_force_needs_a_trial(host):
    host.answers()
    assert host.run("ringwise_apply", force=True)["failed"]
    assert host.calls() == []


def test_a_plan_file_holds_the_whole_request(host):
    host.answers(dry_run=answer(document("plan")), apply=answer(nothing_to_do()))
    result = host.run("ringwise_apply", plan_file="/root/edge.plan", goal="rpc")
    assert result["failed"] and "goal" in result["msg"]
    assert not host.run("ringwise_apply", plan_file="/root/edge.plan")["changed"]
    assert "--plan=/root/edge.plan" in host.calls("apply")[-1]


def test_a_document_of_another_version_is_refused(host):
    host.answers(dry_run=answer(dict(document("plan"), version=3)))
    result = host.run("ringwise_apply", check=True)
    assert result["failed"] and "expected ringwise.plan version 2, found ringwise.plan version 3" in result["msg"]


def test_output_that_is_no_document_is_refused(host):
    host.answers(dry_run=answer(stdout="a page\n"))
    assert "expected a JSON document" in host.run("ringwise_apply", check=True)["msg"]


def test_a_program_that_is_not_installed(host):
    result = host.run("ringwise_apply", executable="/nonexistent/ringwise")
    assert result["failed"] and "/nonexistent/ringwise" in result["msg"]
