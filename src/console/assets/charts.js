// Charts that one reads at a glance: bars with their numbers beside them, drawn as SVG and told as a table to screen readers.

import { h, svg } from './dom.js';
import { number } from './words.js';

/** Horizontal bars in a card. `rows`: `[{label, code, title, count, kind, href}]`. */
export function bars(caption, rows, empty) {
  const most = Math.max(1, ...rows.map((row) => row.count));
  const line = (row) => {
    const bar = svg('svg', { class: `bar ${row.kind ?? ''}`, viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      svg('rect', { width: row.count ? Math.max(0.8, (100 * row.count) / most) : 0, height: 10 }));
    const label = [row.code && h('span', { class: 'code' }, row.code), row.label];
    return h('tr', {}, h('th', { scope: 'row', title: row.title }, row.href ? h('a', { href: row.href }, label) : label),
      h('td', {}, bar), h('td', { class: 'figure' }, number(row.count)));
  };
  const id = `chart-${caption.replace(/\W+/g, '-').toLowerCase()}`;
  return h('section', { class: 'card' }, h('h2', { id }, caption),
    rows.length ? h('table', { class: 'bars', 'aria-labelledby': id }, h('tbody', {}, rows.map(line))) : h('p', { class: 'hint' }, empty));
}

/** How good a share of 0 to 1 is, as a word for the style. */
export const grade = (share) => (share >= 0.9 ? 'high' : share >= 0.6 ? 'middle' : 'low');

/** A meter of 0 to 1; its figure stands beside it. */
export function meter(value) {
  const share = Math.max(0, Math.min(1, value ?? 0));
  return svg('svg', { class: `meter ${grade(share)}`, viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { width: 100 * share, height: 8 }));
}
