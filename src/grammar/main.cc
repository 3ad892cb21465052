// The worker process by itself, for tests; `vivace grammar-worker` is the same.
#include "grammar/worker_main.h"

int main() { return vivace::grammar::RunWorker(); }
