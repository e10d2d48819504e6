// Plan and usage of the account, and who has signed in.

import { get } from './api.js';
import { h, show } from './dom.js';
import { number, percent, t } from './words.js';

export async function account(main, { session }) {
  const usage = await get('/usage');
  const row = (name, value) => [h('dt', {}, name), h('dd', {}, value)];
  const limited = usage.limit !== null && usage.limit !== undefined;
  show(main, h('h1', {}, t('account')), h('div', { class: 'two' },
    h('section', { class: 'card' }, h('h2', {}, t('usage')), h('dl', { class: 'pairs' },
      row(t('plan'), usage.plan), row(t('used'), `${number(usage.used)} (${usage.month})`), row(t('limit'), limited ? number(usage.limit) : t('unlimited')),
      usage.decisionPrecision !== undefined && row(t('precision'), percent(usage.decisionPrecision))),
    limited && h('progress', { max: usage.limit, value: usage.used, 'aria-label': t('used') })),
    h('section', { class: 'card' }, h('h2', {}, t('access')), h('dl', { class: 'pairs' }, row(t('user'), session.user), row(t('level'), session.level)),
      h('p', { class: 'hint' }, t('tokensHint')), h('pre', { class: 'json' }, 'vat-classification token list --account …'))));
}
