//! The roles of a worker.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::error::LaunchError;

/// A part of tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Searches for candidates.
    Propose,
    /// Compiles them, without a GPU.
    Compile,
    /// Measures them on a GPU.
    Run,
}

impl Role {
    const ALL: [Role; 3] = [Role::Propose, Role::Compile, Role::Run];

    fn name(self) -> &'static str {
        match self {
            Role::Propose => "propose",
            Role::Compile => "compile",
            Role::Run => "run",
        }
    }
}

/// At least one role. The text form is `all`, or names separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles(BTreeSet<Role>);

impl Roles {
    /// All roles.
    pub fn all() -> Roles {
        Roles(Role::ALL.into())
    }

    /// Whether a role is among them.
    pub fn contains(&self, role: Role) -> bool {
        self.0.contains(&role)
    }

    /// The roles that none of the others have.
    pub(super) fn outside<'a>(others: impl IntoIterator<Item = &'a Roles>) -> Option<Roles> {
        let mut rest = Roles::all();
        for other in others {
            rest.0.retain(|role| !other.contains(*role));
        }
        (!rest.0.is_empty()).then_some(rest)
    }

    /// Only the role that needs a GPU.
    pub(super) fn run() -> Roles {
        Roles([Role::Run].into())
    }

    /// The roles that need no GPU.
    pub(super) fn without_gpu() -> Roles {
        Roles([Role::Propose, Role::Compile].into())
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.len() == Role::ALL.len() {
            return f.write_str("all");
        }
        let names: Vec<&str> = self.0.iter().map(|role| role.name()).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Roles {
    type Err = LaunchError;

    fn from_str(text: &str) -> Result<Roles, LaunchError> {
        if text == "all" {
            return Ok(Roles::all());
        }
        let role = |name: &str| Role::ALL.into_iter().find(|role| role.name() == name);
        let roles: Option<BTreeSet<Role>> = text.split(',').map(role).collect();
        roles.map(Roles).ok_or_else(|| LaunchError::Roles { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_and_printed() {
        for (text, shown) in [
            ("all", "all"),
            ("run", "run"),
            ("compile,propose", "propose,compile"),
            ("run,run", "run"),
            ("run,compile,propose", "all"),
        ] {
            assert_eq!(text.parse::<Roles>().unwrap().to_string(), shown);
        }
        for text in ["", "run,", "all,run", "Run", "run compile", "walk"] {
            let error = text.parse::<Roles>().unwrap_err().to_string();
            assert!(error.contains("no list of roles; give `all`"), "{error}");
        }
    }
}
