#include "load/report/record_fields.h"

namespace vivace::load {
namespace {

constexpr TimeField kTimes[] = {
    {"scheduled_ns", &RequestRecord::scheduled_ns, false},
    {"sent_ns", &RequestRecord::sent_ns},
    {"first_ns", &RequestRecord::first_ns},
    {"last_ns", &RequestRecord::last_ns},
    {"ended_ns", &RequestRecord::ended_ns},
};

constexpr CountField kCounts[] = {
    {"index", &RequestRecord::index},
    {"conversation", &RequestRecord::conversation},
    {"wanted_prompt_tokens", &RequestRecord::wanted_prompt_tokens},
    {"wanted_output_tokens", &RequestRecord::wanted_output_tokens},
    {"prompt_tokens", &RequestRecord::prompt_tokens},
    {"cached_tokens", &RequestRecord::cached_tokens},
    {"output_tokens", &RequestRecord::output_tokens},
    {"status", &RequestRecord::status},
};

constexpr SampleField kSamples[] = {
    {"at_s", &ServerSample::at_s},
    {"running", &ServerSample::running},
    {"waiting", &ServerSample::waiting},
    {"kv_usage", &ServerSample::kv_usage},
    {"preemptions", &ServerSample::preemptions},
    {"prefix_hit_rate", &ServerSample::prefix_hit_rate},
};

}  // namespace

std::span<const TimeField> TimeFields() { return kTimes; }
std::span<const CountField> CountFields() { return kCounts; }
std::span<const SampleField> SampleFields() { return kSamples; }

}  // namespace vivace::load
