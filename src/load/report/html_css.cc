#include "load/report/html_css.h"

namespace vivace::load {
namespace {

constexpr std::string_view kPageCss = R"(*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:1rem}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:break-word}
.wrap{max-width:1180px;margin:0 auto;padding:1.25rem clamp(.75rem,3vw,2rem) 3rem}
a{color:var(--c0)}
:focus-visible{outline:3px solid var(--c0);outline-offset:2px;border-radius:4px}
.top{display:flex;flex-wrap:wrap;gap:.5rem 2rem;justify-content:space-between;align-items:flex-start}
h1{font-size:1.6rem;line-height:1.2;margin:0}
h2{font-size:1.2rem;margin:2.5rem 0 .75rem;padding-top:1rem;border-top:1px solid var(--rule)}
h3{font-size:1rem;margin:1.5rem 0 .5rem}
.sub{color:var(--muted);margin:.25rem 0 0}
.muted{color:var(--muted)}
.theme{border:1px solid var(--rule);border-radius:8px;display:flex;padding:2px;margin:0;font-size:.85rem}
.theme legend,.seen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.theme input{position:absolute;opacity:0}
.theme label{padding:.3rem .7rem;border-radius:6px;cursor:pointer;color:var(--muted)}
.theme input:checked+label{background:var(--panel);color:var(--ink);font-weight:600}
.theme input:focus-visible+label{outline:3px solid var(--c0);outline-offset:1px}
.verdict{border-left:5px solid var(--good);background:var(--panel);border-radius:0 8px 8px 0;
padding:.75rem 1rem;margin:1.25rem 0}
.verdict strong{color:var(--good)}
.verdict.warn{border-color:var(--warn)}.verdict.warn strong{color:var(--warn)}
.verdict.bad{border-color:var(--bad)}.verdict.bad strong{color:var(--bad)}
.verdict ul{margin:.35rem 0 0;padding-left:1.2rem}
nav{display:flex;flex-wrap:wrap;gap:.35rem 1.1rem;margin:1rem 0 0;font-size:.95rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(7.9rem,1fr));gap:.75rem;margin:1rem 0}
.tile{background:var(--panel);border-radius:10px;padding:.75rem .9rem}
.tile b{display:block;font-size:1.45rem;line-height:1.25;font-variant-numeric:tabular-nums}
.tile span{color:var(--muted);font-size:.85rem}
.scroll{overflow-x:auto;border:1px solid var(--rule);border-radius:10px}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.45rem .55rem;text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
thead th{font-weight:600;color:var(--muted);border-bottom:1px solid var(--rule)}
thead .group th{text-align:center;border-bottom:0;padding-bottom:0}
tbody tr+tr>*{border-top:1px solid var(--grid)}
tbody th{font-weight:600}
.text td{text-align:left;white-space:normal;overflow-wrap:anywhere}
.text th{white-space:normal;vertical-align:top;width:32%}
.text.counts th{width:5rem;text-align:right}
.scroll thead th:first-child,.scroll tbody th{position:sticky;left:0;background:var(--page)}
.text tbody th{position:static}
.edge{border-left:1px solid var(--grid)}
.flag{color:var(--bad);font-weight:600}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1.5rem 2rem;
margin:1rem 0}
.plots>figure,.wide{margin:0;min-width:0}
.wide{overflow-x:auto}
.wide .plot{min-width:640px}
details{border:1px solid var(--rule);border-radius:10px;margin:.75rem 0;padding:0 1rem}
summary{cursor:pointer;padding:.7rem 0;font-weight:600}
summary .muted{font-weight:400}
details[open]{padding-bottom:1rem}
dl{margin:0}dt{font-weight:600;margin-top:.6rem}dd{margin:0;color:var(--muted);max-width:75ch}
footer{margin-top:3rem;color:var(--muted);font-size:.85rem}
.queued{fill:var(--muted);opacity:.45}.prefill{fill:var(--c4);opacity:.75}.decode{fill:var(--c0)}
.stall{fill:var(--c1)}.broken{fill:var(--c7)}
@media print{.theme,nav{display:none}.scroll,.wide{overflow:visible}h2{break-after:avoid}
figure,.tile{break-inside:avoid}}
)";

}  // namespace

std::string_view HtmlCss() { return kPageCss; }

}  // namespace vivace::load
