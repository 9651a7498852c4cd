//! Progress of long work, for whoever shows it. This room does not print.

/// Sees long work go on. Called from several threads.
pub trait Progress: Sync {
    /// A piece of work of so many samples begins.
    fn begin(&self, what: &str, samples: u64) {
        let _ = (what, samples);
    }

    /// So many more samples are done.
    fn advance(&self, samples: u64) {
        let _ = samples;
    }

    /// The piece of work is over.
    fn end(&self) {}

    /// Something worth knowing that is not an error.
    fn note(&self, message: &str) {
        let _ = message;
    }
}

/// Shows nothing.
impl Progress for () {}
