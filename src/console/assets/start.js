// The start page: what is open, by status, chapter and confidence.

import { get } from './api.js';
import { bars, grade } from './charts.js';
import { h, show } from './dom.js';
import { number, percent, pick, t } from './words.js';

const STATUSES = ['UNASSIGNED', 'REJECTED', 'ASSIGNED', 'APPROVED', 'DENIED'];
const OPEN = ['UNASSIGNED', 'REJECTED', 'ASSIGNED'];
const CHAPTERS_SHOWN = 14;

/** The edges of a band: `0.85-0.90` is from 0.85 to below 0.90, and the last one includes its end. */
function edges(band) {
  const [from, to] = band.split('-').map(Number);
  return { from, to, last: to >= 1 };
}

export async function start(main, { taxonomy }) {
  show(main, h('p', { class: 'hint' }, t('loading')));
  const counts = (by, filter) => get(`/assignments/${taxonomy}/counts`, { by, ...filter }).then((answer) => answer.items);
  const [statuses, chapters, bands, changed, classes] = await Promise.all([
    counts(['assignmentStatus', 'strategy']),
    counts('chapter', { assignmentStatus: 'ASSIGNED,REJECTED' }),
    counts('confidenceBand', { assignmentStatus: 'ASSIGNED' }),
    counts('reviewNeeded', { reviewNeeded: true }),
    get(`/product-classes/${taxonomy}`, { size: 100 }).then((answer) => answer.items),
  ]);
  const sum = (rows) => rows.reduce((total, row) => total + row.count, 0);
  const count = (status) => sum(statuses.filter((row) => row.assignmentStatus === status));
  const names = new Map(classes.map((one) => [one.productClassCode, pick(one.labels)]));
  // What a person left insufficient waits no more.
  const waiting = sum(statuses.filter((row) => OPEN.includes(row.assignmentStatus) && row.strategy !== 'MANUAL'));
  const figure = (value, label, href) => h('a', { class: 'card figure-card', href }, h('strong', {}, number(value)), h('span', {}, label));
  const byStatus = STATUSES.map((status) => ({ label: t(status), count: count(status), kind: status.toLowerCase(), href: `#/table?assignmentStatus=${status}` }));
  const byChapter = chapters.filter((row) => row.chapter).sort((a, b) => b.count - a.count).slice(0, CHAPTERS_SHOWN)
    .map((row) => ({ code: row.chapter, label: names.get(row.chapter) ?? '', title: names.get(row.chapter), count: row.count, href: `#/table?assignmentStatus=ASSIGNED,REJECTED&productClass=${row.chapter}` }));
  const byBand = bands.filter((row) => row.confidenceBand).map((row) => {
    const { from, to, last } = edges(row.confidenceBand);
    const below = last ? 1 : Number((to - 0.0001).toFixed(4));
    return { label: `${percent(from)} – ${percent(to)}`, count: row.count, kind: grade(from), href: `#/table?assignmentStatus=ASSIGNED&confidenceFrom=${from}&confidenceTo=${below}&sort=confidence` };
  });
  show(main,
    h('h1', {}, t('start')),
    h('div', { class: 'figures' },
      figure(waiting, t('waiting'), '#/queue'), figure(sum(changed), t('changed'), '#/queue?reviewNeeded=true&assignmentStatus=ALL'),
      figure(count('APPROVED'), t('decided'), '#/table?assignmentStatus=APPROVED'), figure(sum(statuses), t('products'), '#/table?assignmentStatus=ALL')),
    h('p', { class: 'actions' },
      h('a', { class: 'button primary', href: '#/queue?sort=confidence' }, t('leastSure')),
      h('a', { class: 'button', href: '#/queue?sort=impact' }, t('mostImpact'))),
    h('div', { class: 'charts' },
      h('div', { class: 'stack' }, bars(t('openByStatus'), byStatus, t('nothing')), bars(t('byConfidence'), byBand, t('nothing'))),
      bars(t('byChapter'), byChapter, t('nothing'))));
}
