// `vivace tune`: which setting serves a given traffic best on this machine.
//
//   calibrate  steps of many shapes are timed for each number of threads and kind of cache, and a
//              StepTimeModel fitted (under a minute, a quarter of the budget at most)
//   forecast   the real scheduler runs the traffic with every setting of the space; settings that
//              would behave alike become one
//   measure    the search picks, the real engine computes the traffic, the journal keeps it; steps
//              of trials make the next forecasts better
//
// Every trial is an engine of its own, from weights that are mapped once, and the same requests.
// Thread: one; `progress` is called on it. Ends when the search is done, at the budget or soon
// after `stop` is set: loading ends between two weights, warm-up and trials after the step under
// way, and what was measured before is the result. A trial that the budget cut is dropped, but for
// the first.
#pragma once

#include "base/result.h"
#include "engine/model_text.h"
#include "model/loaded_model.h"
#include "tune/result.h"
#include "tune/tune_options.h"

namespace vivace::tune {

Result<TuneResult> RunTune(const TuneOptions& options, const model::ModelFile& file,
                           const ModelText& text);

}  // namespace vivace::tune
