"""The look of the report: one style sheet, inline."""

from __future__ import annotations

from advisor.charts.theme import COLOURS

_VARIABLES = "".join(f"--advisor-{name}:{colour};" for name, colour in COLOURS.items())

CSS = (
    ":root{color-scheme:light;--ink:#1f2933;--soft:#52606d;--line:#d5dbe1;--ground:#f6f8fa;--accent:#274c77;"
    + _VARIABLES
    + "}"
    + """
*{box-sizing:border-box}
body{margin:0;background:#fff;color:var(--ink);font:15px/1.55 FONTS;overflow-wrap:break-word}
main{max-width:60rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.35rem;line-height:1.3;margin:0 0 .5rem;color:var(--accent)}
h3{font-size:1rem;line-height:1.35;margin:0}
p{margin:0 0 .6rem}
a{color:#1d5a96}
.sub{color:var(--soft);margin:0 0 .6rem;font-size:.92em}
header{border-bottom:3px solid var(--accent);padding-bottom:.6rem;margin-bottom:1.25rem}
.answer{font-size:1.2rem;font-weight:600;line-height:1.4;padding:.7rem 1rem;border-radius:8px;background:var(--ground);
border-left:6px solid currentColor}
.advisor-fits{color:#1f6b25}.advisor-tight{color:#8a4f00}.advisor-does_not_fit{color:#a3201a}.advisor-unknown{color:var(--soft)}
.facts{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:.75rem;margin:1rem 0}
.facts>div:last-child{grid-column:1/-1}
.facts>div{border:1px solid var(--line);border-radius:8px;padding:.6rem .9rem;break-inside:avoid}
dt{color:var(--soft);font-size:.85rem}dd{margin:0}
dd strong{display:block;font-size:1.2rem;line-height:1.35;overflow-wrap:anywhere}
dd small{display:block;color:var(--soft);font-size:.85rem}
.quote{margin:1rem 0;padding:.75rem 1rem;background:var(--ground);border-radius:8px;break-inside:avoid}
.quote figcaption{color:var(--soft);font-size:.85rem}
blockquote{margin:.2rem 0 0;font-size:1.05rem}
nav{margin:1.5rem 0;padding:.75rem 1rem;border:1px solid var(--line);border-radius:8px}
nav h2{font-size:1rem;margin:0 0 .25rem}
nav ol{columns:2 16rem;margin:0;padding:0;list-style:none}
nav li{padding:.1rem 0}
.part{margin:2.5rem 0 0;border-top:1px solid var(--line);padding-top:1.25rem}
.remarks{list-style:none;padding:0;margin:0;display:grid;gap:.4rem}
.remarks li{display:flex;gap:.6rem;padding:.45rem .75rem;border-left:4px solid var(--line);background:var(--ground);
break-inside:avoid}
.remarks b{flex:0 0 1rem;text-align:center}
.remarks .stop{border-color:#b3261e;background:#fdf1f0}.remarks .stop b{color:#a3201a}
.remarks .warning{border-color:#ad6300;background:#fdf6ea}.remarks .warning b{color:#8a4f00}
.remarks .info b{color:var(--soft)}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.chart-box{margin:1rem 0;padding:.9rem 1rem;border:1px solid var(--line);border-radius:8px;break-inside:avoid;min-width:0}
.chart-box figcaption{margin-top:.5rem;font-size:.92em}
.chart{display:block;width:100%;height:auto}
.chart text{font-family:Arial,"Liberation Sans",FONTS}
.pair{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:1rem}
.pair .chart-box{margin:0}
.pair>.grid{min-width:0}
.pair>.wide{grid-column:1/-1}
.scroll,.advisor-scroll{overflow-x:auto;max-width:100%}
.grid{margin:1.4rem 0}
.grid.short{break-inside:avoid}
.grid h3{break-after:avoid}
table{border-collapse:collapse;width:100%;font-size:.88rem;line-height:1.45;margin:.35rem 0}
caption{caption-side:bottom;text-align:left;color:var(--soft);font-size:.85rem;padding-top:.35rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem .35rem 0;border-bottom:1px solid var(--line);font-weight:400}
thead th{font-weight:600;border-bottom:2px solid var(--line);vertical-align:bottom}
thead{display:table-header-group}
tr{break-inside:avoid}
.advisor-number{text-align:right;font-variant-numeric:tabular-nums;min-width:4.5rem}
td.advisor-number+td:not(.advisor-number),th.advisor-number+th:not(.advisor-number){padding-left:.8rem}
table small{color:var(--soft);font-size:.92em}
.advisor-swatch{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.5em;print-color-adjust:exact}
.advisor-reasons{font-size:.92em}
.fine{font-size:.82rem;line-height:1.4;color:var(--soft);min-width:14rem}
.fine ul{margin:0;padding-left:1rem}
code{font:.82rem/1.45 ui-monospace,Menlo,Consolas,"Noto Sans Mono",monospace;overflow-wrap:anywhere}
.advisor-steps{font-size:.82rem;table-layout:fixed}
.advisor-steps th{width:15%}.advisor-steps th:nth-child(2){width:15%}.advisor-steps th:nth-child(3){width:32%}
.advisor-steps th:nth-child(4){width:31%}.advisor-steps th:nth-child(5){width:7%}
.advisor-steps td:nth-child(4),#sources td{overflow-wrap:anywhere}
#sources td:last-child{white-space:nowrap}
details>summary{cursor:pointer}
details>summary>h2{display:inline}
@media (max-width:40rem){
main{padding:1rem .9rem 3rem}
h1{font-size:1.5rem}
.pair,.facts{grid-template-columns:minmax(0,1fr)}
.chart-box{padding:.75rem}
.chart-box.wide .chart{min-width:34rem}
.advisor-steps,#sources table{min-width:44rem}
}
@page{size:A4;margin:16mm 14mm 18mm;@bottom-center{content:counter(page) " / " counter(pages);font:9pt FONTS;color:#52606d}}
@media print{
body{font-size:10pt;line-height:1.45;print-color-adjust:exact;-webkit-print-color-adjust:exact}
main{max-width:none;padding:0}
a{color:inherit;text-decoration:none}
.part{margin-top:7mm;padding-top:4mm}
h2,h3,.sub{break-after:avoid}
/* a folded appendix is whole on paper */
details::details-content{content-visibility:visible;display:block;height:auto}
details>summary{list-style:none}
.scroll,.advisor-scroll{overflow:visible}
.facts{gap:3mm}
th,td{padding:.8mm 2mm .8mm 0}
table,caption,.advisor-steps{font-size:8pt}
.fine,code{font-size:7.2pt}
.fine{min-width:58mm}
.advisor-number{min-width:0}
.chart-box.wide .chart{margin:0 auto}
}
"""
)
