// The process that compiles grammars, from its own side. What it says and hears: worker.h.
#pragma once

namespace vivace::grammar {

// Serves descriptor 0 until it closes. The exit code.
int RunWorker();

}  // namespace vivace::grammar
