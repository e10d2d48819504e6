// One assignment with everything that is known of it.

import { call, get } from './api.js';
import { act, classOf, ids, restore, undo } from './assignments.js';
import { dialog, h, show, toast } from './dom.js';
import { askClass, askLabels, askText, candidates, classInForce, codes, foundBy, history, longRates, nameOf, picture, productPage, statusBadge, texts } from './parts.js';
import { plain } from './text.js';
import { number, percent, t } from './words.js';

const ALIKE_SHOWN = 10;

/** The own products that are alike, each with its name. */
async function alikeWithNames(taxonomy, uuid) {
  const { items } = await get(`/assignments/${taxonomy}/${uuid}/alike`).catch(() => ({ items: [] }));
  const shown = items.slice(0, ALIKE_SHOWN);
  if (shown.length === 0) return shown;
  const known = await get(`/assignments/${taxonomy}`, { assignmentStatus: 'ALL', productIds: ids(shown.map((one) => one.productId)), embed: 'PRODUCT' });
  const names = new Map(known.items.map((one) => [one.assignmentUuid, nameOf(one)]));
  return shown.map((one) => ({ ...one, name: names.get(one.assignmentUuid) ?? one.productId }));
}

export async function product(main, { taxonomy, rest: [uuid] }) {
  show(main, h('p', { class: 'hint' }, t('loading')));
  const load = async () => {
    const [item, alike] = await Promise.all([
      get(`/assignments/${taxonomy}/${uuid}`, { embed: 'EVENTS,CANDIDATES,VAT_RATES' }),
      alikeWithNames(taxonomy, uuid),
    ]);
    const place = item.shopId ? `/shops/${item.shopId}/products/local` : '/products/global';
    const record = await get(`${place}/${encodeURIComponent(item.productId)}`, { detail: 'Large' });
    item.product = { ...record.productDetails, picture: record.picture };
    draw(item, alike);
  };
  const change = async (item, action, options) => { if (await act(item.taxonomy, action, [item], { ...options, onRefused: load })) load(); };

  function draw(item, alike) {
    const words = item.candidates?.[0]?.evidence;
    const said = h('div', { class: 'product' }, texts(item, words));
    const button = (text, run) => h('button', { type: 'button', onclick: run }, t(text));
    const similar = (item.candidates ?? []).flatMap((candidate) => (candidate.similar ?? []).map((one) => ({ ...one, code: candidate.productClassCode })));
    show(main, h('h1', {}, plain(nameOf(item))),
      h('div', { class: 'about' }, statusBadge(item), classInForce(item),
        item.confidence !== undefined && h('span', {}, `${t('confidence')} ${percent(item.confidence)}`), item.strategy && h('span', {}, `${t('strategy')} ${foundBy(item)}`),
        item.labels.map((label) => h('span', { class: 'label' }, plain(label))), h('small', {}, plain(item.productId))),
      h('div', { class: 'row' },
        item.assignmentStatus === 'DENIED' ? button('reconfirm', () => change(item, 'RECONFIRM')) : [
          (item.assignmentStatus === 'ASSIGNED' || (item.assignmentStatus === 'APPROVED' && item.reviewNeeded)) && button('approve', () => change(item, 'APPROVE')),
          button('searchClass', async () => { const found = await askClass(item.taxonomy, t('searchClass')); if (found) change(item, 'ASSIGN', { productClass: found }); }),
          button('reject', () => change(item, 'REJECT')), button('unassign', () => change(item, 'UNASSIGN')),
          button('deny', async () => { const comment = await askText(t('deny'), t('comment'), { required: true }); if (comment) change(item, 'DENY', { comment }); })],
        button('label', () => relabel(item)), button('undo', async () => { if (await undo(item.taxonomy)) load(); })),
      h('div', { class: 'review' }, h('div', { class: 'stack' }, h('article', { class: 'card' }, picture(item), said, codes(item)), h('section', { class: 'card' }, h('h2', {}, t('history')), history(item.events ?? [], takeBack))),
        h('section', { class: 'card' },
          h('h2', {}, t('candidates')), candidates(item, { chosen: (one) => change(item, 'ASSIGN', { productClass: classOf(item, one) }), looked: (one) => show(said, texts(item, one.evidence)) }),
          alike.length > 0 && [h('h2', {}, t('own')), h('ul', { class: 'plain' }, alike.map((one) => h('li', {}, h('a', { href: productPage(item.taxonomy, one.assignmentUuid) }, plain(one.name)), ` ${one.productClassCode ?? ''} ${t(one.assignmentStatus)} · ${percent(one.similarity)}`)))],
          similar.length > 0 && [h('h2', {}, t('similar')), h('ul', { class: 'plain' }, similar.slice(0, 10).map((one) => h('li', {}, plain(one.text), ' ', h('small', {}, `${one.code} ${percent(one.similarity)}`))))])),
      item.vatRates?.length > 0 && [h('h2', {}, t('rates')), longRates(item.vatRates)]);
  }

  /** Takes the last decision back, whenever it was made; one about many only after their number was shown. */
  async function takeBack(actionId) {
    try {
      const { selected } = await get(`/assignments/actions/${actionId}`);
      const sure = selected < 2 || await dialog(t('takeBack'), (finish) => h('form', { onsubmit: (event) => { event.preventDefault(); finish(true); } },
        h('p', {}, `${t('takesBack')}: ${number(selected)}`),
        h('div', { class: 'row' }, h('button', { type: 'submit', class: 'primary' }, t('ok')), h('button', { type: 'button', autofocus: true, onclick: () => finish(false) }, t('cancel')))));
      if (!sure) return;
      const left = await restore(actionId);
      toast(left ? `${t('undone')} (${t('keptSince')}: ${number(left)})` : t('undone'));
      await load();
    } catch (error) { toast(error.message, { bad: true }); }
  }

  async function relabel(item) {
    const labels = await askLabels(item.labels);
    if (!labels) return;
    const send = (method, changed) => changed.length && call(method, '/assignments', { body: { assignmentUuids: [item.assignmentUuid], labels: changed } });
    try {
      await send('PUT', labels.filter((name) => !item.labels.includes(name)));
      await send('DELETE', item.labels.filter((name) => !labels.includes(name)));
    } catch (error) { toast(error.message, { bad: true }); }
    load();
  }

  try { await load(); } catch (error) { show(main, h('p', { class: 'fault', role: 'alert' }, error.message)); }
}
