//! The changes that a plan proposes but does not make, and which of them share a command.

use ringwise_model::Intent;

use crate::ProposedChange;

/// What the command of a proposed change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandScope {
    /// It repeats the request with permission to interrupt traffic. Every change with this scope has the same command.
    Request,
    /// It names what this change needs: its device, or an argument of `--set`.
    ThisChange,
}

/// The proposed changes of a plan, in the order in which they were found.
#[derive(Default)]
pub(crate) struct Proposals {
    changes: Vec<ProposedChange>,
    /// The scope of the command of each change.
    scopes: Vec<CommandScope>,
}

impl Proposals {
    pub(crate) fn push(&mut self, change: ProposedChange, scope: CommandScope) {
        self.changes.push(change);
        self.scopes.push(scope);
    }

    pub(crate) fn as_slice(&self) -> &[ProposedChange] {
        &self.changes
    }

    pub(crate) fn into_changes(self) -> Vec<ProposedChange> {
        self.changes
    }

    /// Gives all changes the command that repeats the request.
    pub(crate) fn share_one_command(&mut self, command: &str) {
        for (change, scope) in self.changes.iter_mut().zip(&mut self.scopes) {
            change.command = command.to_string();
            *scope = CommandScope::Request;
        }
    }

    /// Names the devices in the shared command if it would otherwise change other devices too. `command_for` makes the
    /// command for these devices.
    pub(crate) fn name_devices(&mut self, intent: &Intent, command_for: impl FnOnce(&[&str]) -> String) {
        let shares = |scope: &CommandScope| *scope == CommandScope::Request;
        let all = || self.changes.iter().zip(&self.scopes).filter_map(|(c, scope)| Some((c.setting.dev()?, scope)));
        let mut sharing: Vec<String> = Vec::new();
        for (dev, _) in all().filter(|(_, scope)| shares(scope)) {
            if !sharing.iter().any(|d| d == dev) {
                sharing.push(dev.to_string());
            }
        }
        let is_other = |dev: &str| !sharing.iter().any(|d| d == dev);
        // The command repeats `--set`, which may be for another device.
        let configured = intent.wishes.iter().filter_map(|w| w.dev.as_deref()).any(is_other);
        if sharing.is_empty() || configured || !all().any(|(dev, _)| is_other(dev)) {
            return;
        }
        let devs: Vec<&str> = sharing.iter().map(String::as_str).collect();
        let command = command_for(&devs);
        let changes = self.changes.iter_mut().zip(&self.scopes);
        for (change, _) in changes.filter(|(c, scope)| shares(scope) && c.setting.dev().is_some()) {
            change.command.clone_from(&command);
        }
    }
}
