// Plan and usage of the account, and who has signed in.

import { get } from './api.js';
import { h, show } from './dom.js';
import { plain } from './text.js';
import { instant, number, percent, t } from './words.js';

const COLUMNS = ['user', 'level', 'tokenId', 'created', 'expires', 'lastUsed'];

/** The tokens in force, by their ids; who may not see them is told where they are. */
function tokens(items) {
  if (!items) return h('p', { class: 'hint' }, t('tokensAdmin'));
  const row = (one) => h('tr', {}, h('th', { scope: 'row' }, plain(one.user)), h('td', {}, one.level), h('td', { class: 'code' }, one.tokenId),
    h('td', { class: 'nowrap' }, instant(one.createdAt)), h('td', { class: 'nowrap' }, one.expiresAt ? instant(one.expiresAt) : t('never')), h('td', { class: 'nowrap' }, one.lastUsedAt ? instant(one.lastUsedAt) : t('never')));
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t('tokens') }, h('table', { id: 'tokens' },
    h('thead', {}, h('tr', {}, COLUMNS.map((name) => h('th', { scope: 'col' }, t(name))))), h('tbody', {}, items.map(row))));
}

export async function account(main, { session }) {
  const [usage, listed] = await Promise.all([get('/usage'), session.level === 'ADMIN' ? get('/tokens').then((answer) => answer.items) : undefined]);
  const row = (name, value) => [h('dt', {}, name), h('dd', {}, value)];
  const limited = usage.limit !== null && usage.limit !== undefined;
  show(main, h('h1', {}, t('account')), h('div', { class: 'two' },
    h('section', { class: 'card' }, h('h2', {}, t('usage')), h('dl', { class: 'pairs' },
      row(t('plan'), usage.plan), row(t('used'), `${number(usage.used)} (${usage.month})`), row(t('limit'), limited ? number(usage.limit) : t('unlimited')),
      usage.decisionPrecision !== undefined && row(t('precision'), percent(usage.decisionPrecision))),
    limited && h('progress', { max: usage.limit, value: usage.used, 'aria-label': t('used') })),
    h('section', { class: 'card' }, h('h2', {}, t('access')), h('dl', { class: 'pairs' }, row(t('user'), session.user), row(t('level'), session.level)))),
  h('section', { class: 'card' }, h('h2', {}, t('tokens')), tokens(listed), h('p', { class: 'hint' }, t('tokensHint')), h('pre', { class: 'json' }, 'vat-classification token revoke --id …')));
}
