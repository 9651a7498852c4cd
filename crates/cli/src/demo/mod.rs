//! Pictures that look and compress like photographs, made from a seed, so that the demo and the tests need no download.

mod noise;
pub(crate) mod photos;
mod scenes;
