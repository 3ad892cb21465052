#include "load/report/svg_plot.h"

namespace vivace::load {
namespace {

// Okabe and Ito's palette, its light ones darkened for a light page and its dark ones lightened for
// a dark one, so that each keeps a contrast of 3:1. A page may hold radio buttons with the ids
// `light` and `dark` that overrule the system's wish.
#define LIGHT                                                                                     \
  "color-scheme:light;--page:#fff;--panel:#f6f7f9;--ink:#1b1f24;--muted:#59626d;--rule:#d7dce2;"  \
  "--grid:#e6e9ed;--c0:#0072b2;--c1:#c94f00;--c2:#00805c;--c3:#a8487f;--c4:#8a6500;--c5:#4d4d4d;" \
  "--c6:#2b8cbe;--c7:#882255;--good:#00714f;--bad:#b3261e;--warn:#7a5900;"
#define DARK                                                                                       \
  "color-scheme:dark;--page:#14171b;--panel:#1d2126;--ink:#e8eaed;--muted:#a3acb7;--rule:#3a414a;" \
  "--grid:#2a3037;--c0:#56b4e9;--c1:#ff8a4c;--c2:#35c79a;--c3:#e59cc6;--c4:#e6b23c;--c5:#c9ced6;"  \
  "--c6:#9ad7f5;--c7:#e07a9a;--good:#43cf9f;--bad:#ff8a80;--warn:#e6b23c;"

constexpr std::string_view kPlotCss =
    ":root{" LIGHT
    "}\n"
    "@media (prefers-color-scheme:dark){:root:not(:has(#light:checked)){" DARK
    "}}\n"
    ":root:has(#dark:checked){" DARK
    "}\n"
    R"(.plot{display:block;width:100%;height:auto;overflow:visible}
.plot text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:var(--ink)}
.plot .title{font-size:13.5px;font-weight:600}
.plot .muted,.plot .tick{fill:var(--muted)}
.plot .tick,.plot .mark,.plot .cell{font-variant-numeric:tabular-nums}
.plot .mark,.plot .cell{paint-order:stroke;stroke:var(--page);stroke-width:3px;stroke-linejoin:round}
.plot .grid{stroke:var(--grid);fill:none}
.plot .axis{stroke:var(--muted);fill:none}
.plot .line{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.plot .dot{fill:var(--c);stroke:var(--page);stroke-width:1.2}
.plot .fill{fill:var(--c)}
.plot .heat{fill:var(--c0)}
.plot .hole{fill:none;stroke:var(--rule);stroke-dasharray:3 3}
.plot .winner{fill:none;stroke:var(--c1);stroke-width:2.5}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}
.c4{--c:var(--c4)}.c5{--c:var(--c5)}.c6{--c:var(--c6)}.c7{--c:var(--c7)}
)";

}  // namespace

std::string_view PlotCss() { return kPlotCss; }

}  // namespace vivace::load
