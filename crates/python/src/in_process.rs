//! Things that belong to one process.

/// A value that only the process which made it may drop.
///
/// After a fork the child has a copy of everything but the threads. Dropping a running epoch there would wait for threads
/// that do not exist, and giving a buffer back might wait for a lock that one of them held: so in a child nothing is done.
pub(crate) struct InProcess<T> {
    value: Option<T>,
    process: u32,
}

impl<T> InProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), process: std::process::id() }
    }

    /// The value, unless it was taken.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// The same, to change.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.value.as_mut()
    }

    /// Takes the value out, to drop it elsewhere.
    pub(crate) fn take(&mut self) -> Option<Self> {
        let value = self.value.take()?;
        Some(Self { value: Some(value), process: self.process })
    }
}

impl<T> InProcess<T> {
    /// The value itself, if this is the process that made it.
    pub(crate) fn take_value(&mut self) -> Option<T> {
        if self.process == std::process::id() { self.value.take() } else { None }
    }
}

impl<T> Drop for InProcess<T> {
    fn drop(&mut self) {
        if self.value.is_some() && self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
