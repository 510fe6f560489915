//! Exit statuses.

use super::{Topic, word};

pub(super) const TOPICS: &[Topic] = &[
    word(
        &["exit status", "exit statuses", "exit code", "exit codes", "exit"],
        "the meaning of each exit status",
        "All commands use the same values: 0 fine or nothing to do, 1 error, 2 usage, 3 needs attention, 4 failed \
         and everything was restored, 5 failed and not everything was restored, 6 refused before anything was \
         changed.",
        &[
            "Use it|ringwise || alert: reports what became of applied settings. ringwise check || alert: reports errors; warnings alone are status 0, unless --fail-on warning. ringwise \
             plan --exit-code: 3 if there is something to do.",
            "Other|ringwise hold exits with the status of its command; 125, 126 or 127 if it could not run it",
            "See|ringwise help exit 3; ringwise COMMAND --help",
        ],
    ),
    word(
        &["exit 0", "0", "status 0", "exit status 0"],
        "fine, or nothing to do",
        "The command did what was requested, or nothing was to be done.",
        &["See|ringwise help exit status"],
    ),
    word(
        &["exit 1", "1", "status 1", "exit status 1"],
        "error; no setting was changed",
        "For example: the host, a file of --from or the configuration cannot be read. No setting was changed; a measurement of \
         bench that fails has restored what it applied.",
        &["Then|read the message on stderr", "See|ringwise help exit status"],
    ),
    word(
        &["exit 2", "2", "status 2", "exit status 2"],
        "usage error: the command line is wrong",
        "An option, a value or a combination is not valid. Nothing was read or changed.",
        &["Then|ringwise COMMAND --help", "See|ringwise help exit status"],
    ),
    word(
        &["exit 3", "3", "status 3", "exit status 3", "attention", "needs attention"],
        "something needs your attention",
        "ringwise and verify: settings changed since they were applied, or cannot be read; a transaction is on trial, \
         unfinished or unreadable. ringwise also: boot skips the tuning, or the service has a problem. verify --for also: a \
         queue is stuck, or on another CPU. apply, rollback, recover: done, except settings that were refused, ignored, \
         or wait for an offline CPU. confirm: the guard process does not answer. check: a finding from the severity of \
         --fail-on upwards. plan --exit-code: there is something to do, or a requested setting is not planned. config check \
         --from: the file fits a host only partly. bench report: different conditions.",
        &[
            "Reboot|If nothing was applied since the boot (no ringwise persist, or its service failed), ringwise exits \
             with status 0: monitor systemctl is-active ringwise.service too (after persist --daemon: \
             ringwise-daemon.service), or ringwise plan --exit-code as root",
            "Then|run ringwise: the lines now and pending show what needs attention, the line Next the command",
            "See|docs/exit-status.md: all cases; ringwise help drift, trial, refused, finding",
        ],
    ),
    word(
        &["exit 4", "4", "status 4", "exit status 4"],
        "failed, and everything was restored",
        "A step failed, a trial ended without a confirmation, or a transmit queue was stuck. All settings have their \
         earlier values.",
        &[
            "Then|the message names the step and the kernel's error; ringwise history ID shows it again",
            "See|ringwise help guard, refused",
        ],
    ),
    word(
        &["exit 5", "5", "status 5", "exit status 5"],
        "failed, and NOT everything was restored",
        "A step failed, and a setting could not be restored. The output lists what is left, with the commands that \
         restore it.",
        &["Then|ringwise recover", "See|ringwise help journal"],
    ),
    word(
        &["exit 6", "6", "status 6", "exit status 6"],
        "refused before anything was changed",
        "A precondition is not met: for example the change would interrupt the control path, the plan file has \
         expired, or a setting was changed since.",
        &[
            "Then|the message names the reason, and the option that allows it if there is one",
            "See|ringwise help control path, manual",
        ],
    ),
];
