// The worker process by itself, for tests; `vivace grammar-worker` is the same.
#include "grammar/worker.h"

int main() { return vivace::grammar::RunWorker(); }
