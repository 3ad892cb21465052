// The answers that need neither the engine nor a prep thread. Loop thread only.
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "server/json/json_writer.h"
#include "server/service/health.h"
#include "server/service/service.h"
#include "server/web/web_files.h"

namespace vivace::server {
namespace {

void WriteModel(const ServedModel& model, std::string_view name, JsonWriter* w) {
  w->BeginObject();
  w->KeyString("id", name);
  w->KeyString("object", "model");
  w->KeyInt("created", model.created_s);
  w->KeyString("owned_by", "vivace");
  w->KeyString("root", model.name());
  w->KeyNull("parent");
  w->KeyInt("max_model_len", model.max_model_len);
  w->EndObject();
}

}  // namespace

void Service::ListModels(Exchange& exchange, std::string_view) {
  std::string body;
  JsonWriter w(&body);
  w.BeginObject();
  w.KeyString("object", "list");
  w.Key("data");
  w.BeginArray();
  for (const std::string& name : model_.names) WriteModel(model_, name, &w);
  w.EndArray();
  w.EndObject();
  SendJson(exchange, std::move(body));
}

void Service::ShowModel(Exchange& exchange, std::string_view name) {
  const std::string decoded = DecodedPath(name);
  if (const Status status = model_.CheckName(decoded); !status) {
    Refuse(exchange, status.error());
    return;
  }
  std::string body;
  JsonWriter w(&body);
  WriteModel(model_, decoded, &w);
  SendJson(exchange, std::move(body));
}

void Service::ShowReadiness(Exchange& exchange, std::string_view) {
  Status status = CheckEngine(engine_->stats(), SteadyNanos());
  if (admission_.draining()) {
    status = Fail(ErrorCode::kUnavailable, "shutting_down", "", "the server is shutting down");
  }
  if (!status) {
    metrics_.CountResponse(HttpStatus(status.error().code));
    SendError(exchange, status.error(), ErrorShape::kOpenAi, RetryAfter(),
              NewRequestId(exchange.request()));
    return;
  }
  SendJson(exchange, R"({"status":"ok"})");
}

void Service::ShowMetrics(Exchange& exchange, std::string_view) {
  metrics_.CountResponse(200);
  exchange.Send(200, {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}},
                metrics_.Render(engine_->stats()));
}

void Service::ShowVersion(Exchange& exchange, std::string_view) {
  SendJson(exchange, R"({"version":")" VIVACE_VERSION R"("})");
}

// Callers see their own; the administrator, and everyone where there is none, sees all.
void Service::ListRequests(Exchange& exchange, std::string_view) {
  const AccessControl::Caller caller = access_.WhoIs(exchange.request());
  const int64_t now = SteadyNanos();
  std::string body;
  JsonWriter w(&body);
  w.BeginObject();
  w.KeyString("object", "list");
  w.Key("data");
  w.BeginArray();
  records_.ForEach([&](const RequestRecord& record) {
    if (access_.MaySee(caller, record.owner)) WriteRequestRow(record, now, &w);
  });
  w.EndArray();
  w.EndObject();
  SendJson(exchange, std::move(body));
}

void Service::ShowRequest(Exchange& exchange, std::string_view name) {
  constexpr std::string_view kTimeline = "/timeline";
  if (name.ends_with(kTimeline)) name.remove_suffix(kTimeline.size());
  const AccessControl::Caller caller = access_.WhoIs(exchange.request());
  // What may not be seen is not said to be there.
  const auto record = records_.Find(DecodedPath(name), [&](const RequestRecord& found) {
    return access_.MaySee(caller, found.owner);
  });
  if (!record) {
    Refuse(exchange, {ErrorCode::kNotFound, "request_not_found",
                      fmt::format("there is no record of this request; the last {} that ended are "
                                  "kept",
                                  limits::kMaxTimelines),
                      ""});
    return;
  }
  std::string body;
  JsonWriter w(&body);
  WriteTimeline(*record, SteadyNanos(), &w);
  SendJson(exchange, std::move(body));
}

void Service::ShowOpenApi(Exchange& exchange, std::string_view) { SendJson(exchange, openapi_); }

void Service::ShowWebFile(Exchange& exchange, std::string_view name) {
  const WebFile* file = FindWebFile(name);
  if (file == nullptr) {
    Refuse(exchange, {ErrorCode::kNotFound, "not_found", "the page has no such file", ""});
    return;
  }
  metrics_.CountResponse(200);
  exchange.Send(200, WebFileHeaders(*file), std::string(file->bytes));
}

void Service::ShowPage(Exchange& exchange, std::string_view) {
  ShowWebFile(exchange, "index.html");
}

void Service::SayOk(Exchange& exchange, std::string_view) {
  SendJson(exchange, R"({"status":"ok"})");
}

void Service::ResetPrefixCache(Exchange& exchange, std::string_view) {
  engine_->ResetPrefixCache();
  SendJson(exchange, R"({"status":"ok"})");
}

}  // namespace vivace::server
