# Copyright: the ringwise developers
# SPDX-License-Identifier: Apache-2.0 OR MIT

"""Scenarios for the stand-in of the program.

The documents in the folder were printed by ringwise for recorded hosts. What no recording has (a trial, a rollback) is
added here, as the schemas describe it.

Usage: scenarios.py FOLDER HOST=NAME...    an executable FOLDER/HOST/ringwise for each host, e.g. a=good b=refused
"""

from __future__ import annotations

import json
import os
import shlex
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def text(name):
    """A recorded output."""
    with open(os.path.join(HERE, "documents", name), encoding="utf-8") as f:
        return f.read()


def document(name):
    """A recorded document."""
    return json.loads(text(name + ".json"))


def answer(doc=None, rc=0, **more):
    """An answer of the program."""
    return dict({"rc": rc, "stdout": "" if doc is None else json.dumps(doc) + "\n"}, **more)


def trial(fate="pending"):
    """A trial of one minute, as in ringwise.outcome."""
    return {"seconds": 60, "until_unix": 1790001060, "until_boot_ms": 900000, "fate": fate}


def on_trial(number=1):
    """ringwise.outcome of apply --confirm."""
    return dict(document("outcome_applied"), trial=trial(), transaction=number)


def confirmed(number=1, already=False):
    """ringwise.outcome of confirm."""
    outcome = dict(document("outcome_applied"), trial=trial({"confirmed": {"by": "root"}}), transaction=number)
    return dict(outcome, already_confirmed=already)


def error(code, rc=6, message="a message", **more):
    """An answer with ringwise.error instead of another document."""
    doc = dict({"schema": "ringwise.error", "version": 1, "status": rc, "code": code, "message": message}, **more)
    return answer(doc, rc=rc, stderr="error: %s\n" % message)


def persist(changed, boot="nothing"):
    """ringwise.persist. boot: what the next boot applies."""
    return {
        "schema": "ringwise.persist",
        "version": 1,
        "mode": "at_boot",
        "config": "/etc/ringwise/ringwise.toml",
        "root": "/",
        "dry_run": True,
        "changed": changed,
        "files": [],
        "removed": [],
        "notes": [],
        "service_runs": False,
        "boot": boot,
        "next": None,
    }


def nothing_to_do():
    """ringwise.outcome of an apply without steps."""
    applied = document("outcome_applied")
    empty = {k: [] for k, v in applied.items() if isinstance(v, list)}
    outcome = dict(applied, verdict="nothing_to_do", changed=False, verified=0, verified_of=0, **empty)
    del outcome["transaction"]
    return outcome


def failed(verdict="put_back"):
    """ringwise.outcome of an apply that the kernel refused: restored (put_back), or not fully (put_back_incomplete)."""
    applied = document("outcome_applied")
    setting = applied["applied"][0]
    failure = {
        "setting": setting,
        "errno": 22,
        "words": "EINVAL (Invalid argument)",
        "meaning": "the kernel refuses these CPUs",
        "path": "/proc/irq/39/smp_affinity_list",
        "data": "0",
    }
    outcome = dict(applied, verdict=verdict, changed=False, applied=[], pending=[], failed=failure)
    outcome["put_back"] = applied["applied"][1:3]
    if verdict == "put_back_incomplete":
        outcome["changed"] = True
        outcome["put_back_incomplete"] = [
            {
                "address": {"irq_cpus": {"dev": "eth0", "of": {"rx": 0}}},
                "was": dict(setting, cpus="0-7"),
                "now": {"known": setting},
                "why": "EIO (Input/output error)",
                "command": "echo 0-7 > /proc/irq/39/smp_affinity_list",
            }
        ]
    return outcome


def status(on_trial_of=None, boot="nothing"):
    """ringwise.status, with a transaction on trial or without. boot: what the next boot applies."""
    doc = document("status")
    doc["verify"] = {"schema": "ringwise.verify", "version": 1, "settings": []}
    if on_trial_of is not None:
        doc["verify"]["trial"] = dict(trial(), transaction=on_trial_of, who="root", guard={"pid": 812})
    doc["boot"] = boot
    return doc


def verified(ok=True, number=1):
    """ringwise.verify of a transaction on trial, with counted interrupts."""
    doc = document("verify")
    for setting in doc["settings"]:
        setting.update(how="same", now={"known": setting["want"]})
        setting.pop("changed", None)
    queues = [
        {
            "dev": "eth0",
            "queue": "rx-%d" % n,
            "planned": str(n),
            "seen_on": str(n) if ok else "6-7",
            "interrupts": 420,
            "packets": 1200,
            "findings": [] if ok else ["interrupts_elsewhere"],
        }
        for n in range(2)
    ]
    doc["attention"] = ["trial_pending"] if ok else ["trial_pending", "queue_findings"]
    doc["counted"] = {"seconds": 1.0, "queues": queues}
    doc["trial"] = dict(trial(), transaction=number, who="root", guard={"pid": 812})
    return doc


def watched(packets=100000, dropped=0):
    """ringwise.watch of one interval."""
    doc = document("watch")
    link = doc["links"]["eth0"]
    link["rx"]["packets"] = packets
    link["tx"]["packets"] = 0
    link["drops"] = {"nic": dropped, "no_buffer": 0, "stack": 0, "tx": 0, "qdisc": 0}
    return doc


def host(verify=None, watch=None):
    """A host that can be tuned: apply on trial, verify, confirm; after that there is nothing to do."""
    same = {
        "check": answer(document("check")),
        "apply --output=diff": answer(stdout=text("plan.diff")),
        "plan --output=diff": answer(stdout=text("plan.diff")),
        "config": answer(),
    }
    kept = dict(
        same,
        **{
            "apply --dry-run": answer(document("plan_nothing")),
            "apply": answer(nothing_to_do()),
            "plan": answer(document("plan_nothing")),
            "status": answer(status()),
            "verify": answer(verified()),
            "watch": answer(watched()),
            "confirm": error("nothing_on_trial"),
            "persist": answer(persist(True), next="persisted"),
            "persist --dry-run": answer(persist(True)),
        }
    )
    boot = {"applies": {"config": "/etc/ringwise/ringwise.toml"}}
    persisted = dict(kept, **{"persist --dry-run": answer(persist(False, boot))})
    tried = dict(
        kept,
        **{
            "status": answer(status(1), rc=3),
            "verify": answer(verify or verified(), rc=3),
            "watch": answer(watch or watched()),
            "confirm": answer(confirmed(), next="kept"),
        }
    )
    start = dict(
        kept,
        **{
            "apply --dry-run": answer(document("plan")),
            "apply": answer(on_trial(), next="tried"),
            "plan": answer(document("plan"), rc=3),
        }
    )
    return {"start": start, "tried": tried, "kept": kept, "persisted": persisted}


def refused():
    """A host whose kernel refuses a step: everything is restored."""
    scenario = host()
    scenario["start"]["apply"] = answer(failed(), rc=4)
    return scenario


def incomplete():
    """A host on which a requested setting interrupts traffic, so it is not planned."""
    scenario = host()
    scenario["start"]["plan"] = answer(document("plan_skipped"), rc=3)
    scenario["start"]["apply --dry-run"] = answer(document("plan_skipped"))
    return scenario


NAMES = {
    "incomplete": incomplete,
    "good": host,
    "refused": refused,
    "elsewhere": lambda: host(verify=verified(ok=False)),
    "drops": lambda: host(watch=watched(dropped=5000)),
}


def write(folder, scenario):
    """Writes a folder with an executable that replays the scenario. Returns its path."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "scenario.json"), "w", encoding="utf-8") as f:
        json.dump(scenario, f)
    program = os.path.join(folder, "ringwise")
    words = [sys.executable, os.path.join(HERE, "ringwise.py"), folder]
    with open(program, "w", encoding="utf-8") as f:
        f.write('#!/bin/sh\nexec %s "$@"\n' % " ".join(shlex.quote(w) for w in words))
    os.chmod(program, 0o755)
    return program


def calls(folder):
    """The arguments of every call so far."""
    file = os.path.join(folder, "log")
    if not os.path.exists(file):
        return []
    with open(file, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


if __name__ == "__main__":
    for each in sys.argv[2:]:
        host_name, dummy, scenario_name = each.partition("=")
        write(os.path.join(sys.argv[1], host_name), NAMES[scenario_name]())
