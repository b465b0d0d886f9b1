"""The style sheet of ``report.html``, for screens and for paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #52606d; --line: #cbd2d9; --bar: #2f6f4f; --paper: #fff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #9aa5b1; --line: #3e4c59; --bar: #7fc29b; --paper: #151a1f } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem }
h1 { margin-bottom: .2rem } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--line) }
.soft, caption { color: var(--soft) } caption { text-align: left; padding-bottom: .4rem }
.wide, pre { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-size: .92rem }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.bar { background: var(--bar); height: .7rem; min-width: 1px }
.ok { font-weight: 600 } .lead { font-size: 1.1rem }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 0 2rem } .two h3 { margin: .3rem 0 }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1rem }
figure { margin: .5rem 0 } figcaption { color: var(--soft); font-size: .9rem } svg.graph { width: 100%; height: auto }
.edge { fill: none; stroke: var(--soft); stroke-width: 1.3 } .tip { fill: var(--soft) }
svg text { font: 12px system-ui, sans-serif; text-anchor: middle; fill: #1f2933 }
svg rect { fill: #eef1f4; stroke: #52606d } .outcome rect { fill: #ffe3b0 } .protected rect { fill: #f9cfd6 }
.admissible rect { fill: #cfe8d5 } .inadmissible rect { fill: #dcd6f7 }
.chip { padding: 0 .4rem; border-radius: .3rem; color: #1f2933 } .chip.outcome { background: #ffe3b0 }
.chip.protected { background: #f9cfd6 } .chip.admissible { background: #cfe8d5 }
.chip.inadmissible { background: #dcd6f7 }
.stack { display: flex; height: 1.4rem; border-radius: .3rem; overflow: hidden } .part { display: block }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .9rem }
.key { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; border-radius: .15rem }
.p0 { background: #2f6f4f } .p1 { background: #4f8fc0 } .p2 { background: #d08c3c } .p3 { background: #9a6fb0 }
.p4 { background: #c0565b } .p5 { background: #6b8e23 } .p6 { background: #607d8b } .p7 { background: #b0a03c }
@page { size: A4; margin: 12mm }
@media print { body { font-size: 11px; margin: 0; max-width: none } h1 { font-size: 1.5rem }
  h2 { margin-top: .8rem; font-size: 1.1rem; break-after: avoid } .annex { break-before: page }
  ul { margin: .3rem 0 } table, .legend, figcaption { font-size: 10px } .lead { font-size: 13px }
  .stack, .legend, tr, figure, table.whole { break-inside: avoid } th, td { padding: .1rem .4rem }
  svg.graph { max-height: 9rem } pre { white-space: pre-wrap }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact } }
"""
