"""Style sheet of ``report.html`` for screens and for paper, and the fonts embedded in the report."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from pathlib import Path

WEIGHTS = (400, 600)


@cache
def fonts() -> str:
    """Return the font faces with embedded fonts: a subset of Source Sans 3, renamed as its licence (OFL) requires."""
    folder = Path(__file__).parent / "fonts"
    faces = [
        f"@font-face{{font-family:'Espalier Sans';font-weight:{weight};src:url(data:font/woff2;base64,"
        f"{b64encode((folder / f'espalier-sans-{weight}.woff2').read_bytes()).decode()}) format('woff2')}}\n"
        for weight in WEIGHTS
    ]
    return "/* Espalier Sans: a subset of Source Sans 3, © Adobe, SIL Open Font License 1.1 */\n" + "".join(faces)


STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #4b5863; --line: #cbd2d9; --bar: #2f6f4f; --paper: #fff;
  --good: #e3f1e8; --care: #fdf1d6; --bad: #fbe3e6 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #aab4bd; --line: #3e4c59; --bar: #7fc29b; --paper: #151a1f; --good: #1d3328;
    --care: #3a3018; --bad: #40222a }
  svg.release .line, svg.release .thin, svg.release .drowned { stroke: #7fc29b } svg.release .tip { fill: #7fc29b }
  svg.release .faded { stroke: #9aa5b1 }
  svg.release .refused { stroke: #f08a98 } }
* { box-sizing: border-box }
body { font: 16px/1.5 'Espalier Sans', 'Source Sans 3', system-ui, sans-serif; color: var(--ink);
  background: var(--paper); margin: 0 }
main { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }
h1 { margin: 0 0 .3rem; line-height: 1.2 } h2 { margin: 1.6rem 0 .5rem; border-bottom: 2px solid var(--bar);
  font-size: 1.3rem; line-height: 1.3 } h3 { margin: .4rem 0 .1rem; font-size: 1.05rem }
h1, h2, h3, th, strong { font-weight: 600 } p { margin: .4rem 0 }
.soft, caption { color: var(--soft) } caption { text-align: left; padding-bottom: .4rem }
code { font: inherit; font-weight: 600 } .wide + .wide { margin-top: .6rem }
.wide { overflow-x: auto } pre { white-space: pre-wrap }
table { border-collapse: collapse; width: 100%; font-size: .95rem }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.bar { background: var(--bar); height: .7rem; min-width: 1px }
.ok { font-weight: 600 } .lead { font-size: 1.15rem }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 0 2rem } .two p { margin: 0 }
.verdict { padding: .6rem .9rem; border-left: .4rem solid var(--bar); background: var(--good) }
.verdict.weak { background: var(--care); border-color: #a97400 }
.verdict.noise { background: var(--bad); border-color: #b8344a }
tr.works th { background: var(--good) } tr.weak th { background: var(--care) } tr.noise th { background: var(--bad) }
tr > th[scope=row] { width: 7rem } td.names { color: var(--soft) }
.odds { display: flex; gap: 1rem; flex-wrap: wrap }
.odds p { flex: 1; border: 1px solid var(--line); border-radius: .4rem; padding: .3rem .8rem; min-width: 9rem }
.odds strong { display: block; font-size: 1.7rem; line-height: 1.2 }
figure { margin: .8rem 0 } figcaption { color: var(--soft); font-size: .92rem }
svg.release { width: 100%; height: auto; max-height: 40rem; display: block; margin: auto }
svg.story { width: 27.5rem; max-width: 100%; height: auto; display: block; border: 1px solid var(--line);
  border-radius: .4rem } .story figure { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; align-items: center }
.story figcaption { flex: 1; min-width: 12rem; font-size: 1rem; color: var(--ink) }
.chip { padding: 0 .4rem; border-radius: .3rem; color: #1f2933 } .chip.outcome { background: #ffe3b0 }
.chip.protected { background: #f9cfd6 } .chip.admissible { background: #cfe8d5 }
.chip.inadmissible { background: #dcd6f7 }
table.whole td:nth-child(2), table.whole td:nth-child(4) { overflow-wrap: normal }
.stack { display: flex; height: 1.4rem; border-radius: .3rem; overflow: hidden } .part { display: block }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .9rem }
.key { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; border-radius: .15rem }
.p0 { background: #2f6f4f } .p1 { background: #4f8fc0 } .p2 { background: #d08c3c } .p3 { background: #9a6fb0 }
.p4 { background: #c0565b } .p5 { background: #6b8e23 } .p6 { background: #607d8b } .p7 { background: #b0a03c }
section.label { border: 2px solid; padding: .4rem 1rem } section.label th { width: 9rem }
@media screen and (max-width: 560px) { main { margin: 1rem auto } .two { grid-template-columns: 1fr }
  th, td { padding: .2rem .35rem } table { font-size: .88rem } section.label { padding: .3rem .5rem }
  section.label th { width: 6rem } tr > th[scope=row] { width: auto }
  figure.large { overflow-x: auto } svg.release { width: auto; max-height: none; margin: 0 } }
@page { margin: 13mm }
@media print { body { font-size: 12.2px; line-height: 1.4 } main { margin: 0; max-width: none; padding: 0 }
  h1 { font-size: 1.7rem } h2 { margin-top: .8rem; font-size: 1.15rem; break-after: avoid } h3 { break-after: avoid }
  .second, .paid, .annex { break-before: page } .paid + .annex { break-before: auto; margin-top: 1.4rem }
  .annex { font-size: 10.4px; line-height: 1.32 }
  .annex h2 { margin: .6rem 0 .2rem }
  ul { margin: .3rem 0 } p { orphans: 3; widows: 3 } table, .legend, figcaption { font-size: 11.5px }
  .annex table { font-size: 9.4px } .lead { font-size: 15px } caption, thead, thead tr { break-after: avoid }
  caption, .short { break-inside: avoid }
  tbody tr:nth-child(-n+3) { break-after: avoid } tbody tr:nth-last-child(-n+3) { break-before: avoid }
  .annex > ul, .stack, .legend, tr, figure, .story, .privacy, .people, .verdict { break-inside: avoid }
  th, td { padding: .14rem .4rem }
  .annex th, .annex td { padding: .05rem .35rem } table.whole td:first-child { min-width: 9rem }
  thead { display: table-header-group } .wide { overflow: visible }
  svg.release { max-height: 105mm } svg.story { width: 84mm }
  .first:has(.story) svg.release { max-height: 76mm } .story figcaption { font-size: 12px }
  section.label { padding: .2rem .6rem }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact } }
"""
