// The style sheet of the status page, and the policy that allows it and nothing else: no script, no image, nothing fetched, no frame around the page.

import { createHash } from "node:crypto";

/** Marks beside the plots are made by the sheet (`data-text`), so that a terminal browser and a screen reader do not read them out: the words beside say the same. */
export const pageSheet = `
:root{color-scheme:light dark;--paper:#fbfbf9;--ink:#1d2733;--quiet:#556069;--line:#d9ddd8;--card:#fff;--plot:#1f62c4;--fill:#1f62c426;--error:#a3231f;--warning:#7d5200}
@media(prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#dfe4ea;--quiet:#9aa6b2;--line:#333a43;--card:#1b2027;--plot:#6aa5ff;--fill:#6aa5ff2e;--error:#ff8f87;--warning:#e8b45a}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:0 auto;padding:1rem;color:var(--ink);background:var(--paper);overflow-wrap:anywhere}
h1{font-size:1.3rem;margin:.5rem 0}h2{font-size:1.1rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:0}h3 small{font-weight:normal}
p{margin:.25rem 0}a{color:var(--plot)}
.quiet,small,th{color:var(--quiet)}
.error strong{color:var(--error)}.warning strong{color:var(--warning)}
.warnings{padding-left:1.2rem}.warnings li{margin:.5rem 0}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5rem,1fr));gap:.75rem;margin:.75rem 0}
.tiles div,figure{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.6rem .8rem;margin:0}
.tiles dt{color:var(--quiet)}.tiles dd{margin:0}.tiles b{display:block;font-size:1.6rem;line-height:1.3;font-weight:600}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,24rem),1fr));gap:.75rem;margin:.75rem 0}
.plot{display:grid;grid-template:6rem auto/3.6rem 1fr;gap:.15rem .4rem;margin-top:.5rem;font-size:.75rem;color:var(--quiet)}
.plot svg{display:block;width:100%;height:100%;overflow:visible}
.marks{display:flex;justify-content:space-between}.marks span::before{content:attr(data-text)}
.marks.up{flex-direction:column;text-align:right;line-height:1}.marks.along{grid-column:2}
.grid{stroke:var(--line)}.run{fill:none;stroke:var(--plot);stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}.below{fill:var(--fill)}
table{border-collapse:collapse}th,td{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top;font-weight:normal}
thead th{border-bottom:1px solid var(--line)}
.facts th{width:14rem;max-width:45vw}
.wide{overflow-x:auto;overflow-wrap:normal}.wide td,.wide th{white-space:nowrap}
.parts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,28rem),1fr));gap:0 2rem}
`;

/** The value of Content-Security-Policy. */
export const pagePolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(pageSheet).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
