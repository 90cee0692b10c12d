//! MCP servers as plugins, on a hub in this process.

mod calls;
mod cycles;
mod hostile;
mod killed;
mod life;
mod peers;
mod support;
