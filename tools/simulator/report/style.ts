/**
 * The page's style, light and dark. Lines use eight hues that stay apart for most colour-blind eyes (after Okabe and
 * Ito 2008), cells one hue from faint to full, with the number in them, so that nothing rests on colour alone.
 */
export const STYLE = `
:root{color-scheme:light \
dark;--ink:#1c2024;--soft:#5d6670;--faint:#e3e6e9;--page:#fcfcfb;--card:#ffffff;--heat:214,96,20;--good:22,128,96;
--c0:#0b6bb8;--c1:#d55e00;--c2:#00856a;--c3:#b0508c;--c4:#8a6d00;--c5:#3a9bd4;--c6:#7a5cc4;--c7:#6b6b6b}
@media (prefers-color-scheme:dark){:root{\
--ink:#e8eaec;--soft:#a0a8b0;--faint:#343a40;--page:#15181b;--card:#1d2125;--heat:240,130,50;--good:60,180,140;
--c0:#5aa9e6;--c1:#f08c3c;--c2:#35c29c;--c3:#e08cc0;--c4:#d8b84a;--c5:#8cc8ee;--c6:#b09cf0;--c7:#a8a8a8}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1240px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:26px;margin:0 0 4px}h2{font-size:19px;margin:40px 0 4px}h3{font-size:15px;margin:20px 0 4px}
p{margin:4px 0 12px;max-width:78ch}.soft,.note{color:var(--soft)}.note{font-size:13px}
.card{background:var(--card);border:1px solid var(--faint);border-radius:8px;padding:14px \
16px;overflow-x:auto;margin:8px 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
th,td{padding:5px 7px;text-align:right;white-space:nowrap}th:first-child,td:first-child{text-align:left}
th{font-weight:600;color:var(--soft);vertical-align:bottom}tbody tr{border-top:1px solid var(--faint)}
.heat th:not(:first-child){writing-mode:vertical-rl;text-align:left;padding:5px 2px}
.heat td{padding:5px 3px;font-size:11px}
.heat td.best{outline:2px solid rgb(var(--good));outline-offset:-2px;border-radius:4px;font-weight:600}
.heat th.reference{color:var(--ink)}
.facts{display:flex;flex-wrap:wrap;gap:10px;margin:16px 0}
.fact{background:var(--card);border:1px solid var(--faint);border-radius:8px;padding:8px 14px}
.fact b{display:block;font-size:20px}
svg{display:block;width:100%;height:auto;font:12px system-ui,sans-serif}
.narrow{display:none}
@media (max-width:760px){.wide{display:none}.narrow{display:block}main{padding:20px 12px 48px}.card{padding:10px \
12px}.heat td{font-size:10px;padding:5px 2px}th,td{padding:5px 4px}}
svg text{fill:var(--ink)}svg .soft{fill:var(--soft)}svg .grid{stroke:var(--faint)}svg .axis{stroke:var(--soft)}
summary{cursor:pointer;color:var(--soft);margin:8px 0}
.win{color:rgb(var(--good));font-weight:600}.loss{color:rgb(var(--heat));font-weight:600}
.item{white-space:nowrap}
.key{display:inline-block;width:14px;height:3px;border-radius:2px;vertical-align:middle;margin:0 5px 0 14px}
`;

/** The hue of a line by its number; more than eight are told apart by name only. */
export function hue(number: number): string {
  return `var(--c${number % 8})`;
}
