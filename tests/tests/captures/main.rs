//! The flight recorder from outside: what it captures, what others see in it, what it never has, and
//! what it may take.

mod bounds;
mod dumped;
mod old_client;
mod secrets;
mod triggered;
