// The start page: what is open, by status, chapter and confidence.

import { get } from './api.js';
import { ids, page } from './assignments.js';
import { bars, grade } from './charts.js';
import { h, show } from './dom.js';
import { productPage } from './parts.js';
import { current, number, percent, pick, t } from './words.js';

const STATUSES = ['UNASSIGNED', 'REJECTED', 'ASSIGNED', 'APPROVED', 'DENIED'];
const OPEN = ['UNASSIGNED', 'REJECTED', 'ASSIGNED'];
const CHAPTERS_SHOWN = 14;

/** The edges of a band: `0.85-0.90` is from 0.85 to below 0.90, and the last one includes its end. */
function edges(band) {
  const [from, to] = band.split('-').map(Number);
  return { from, to, last: to >= 1 };
}

/** A field that leads to one product by its id, or to the list of those whose names have these words. */
function finder(taxonomy, go) {
  const field = h('input', { id: 'find', type: 'search', class: 'wide', maxlength: 200, required: true });
  const find = async (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (!text) return;
    const found = await page(taxonomy, { assignmentStatus: 'ALL', productIds: ids([text]), size: 2 }).catch(() => ({ items: [] }));
    if (found.items.length === 1) { go(productPage(taxonomy, found.items[0].assignmentUuid)); return; }
    const either = current() === 'de' ? ['de', 'en'] : ['en', 'de'];
    const criteria = [...either.map((languageKey) => ({ languageKey, productName: text, operation: 'OR' })), { productId: text }];
    go(`#/table?${new URLSearchParams({ taxonomy, assignmentStatus: 'ALL', filterCriteria: JSON.stringify(criteria) })}`);
  };
  return h('form', { class: 'row find', role: 'search', onsubmit: find }, h('label', { for: 'find' }, t('findProduct'), ' ', field), h('button', { type: 'submit' }, t('find')));
}

export async function start(main, { taxonomy, go }) {
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
      h('a', { class: 'button', href: '#/queue?sort=impact' }, t('mostImpact')),
      h('a', { class: 'button', href: '#/table?assignmentStatus=ASSIGNED,REJECTED&strategy=DESCRIPTION,CUSTOMS-CODE&sort=confidence' }, t('leastSureList'))),
    finder(taxonomy, go),
    h('div', { class: 'charts' },
      h('div', { class: 'stack' }, bars(t('openByStatus'), byStatus, t('nothing')), bars(t('byConfidence'), byBand, t('nothing'))),
      bars(t('byChapter'), byChapter, t('nothing'))));
}
