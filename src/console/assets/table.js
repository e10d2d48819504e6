// A table of many: filters, selection, and one action for all that are marked or for everything in the filter.

import { call, post } from './api.js';
import { act, cursorOf, filtersOf, finished, page, restore, storing, undo } from './assignments.js';
import { dialog, h, show, toast } from './dom.js';
import { askClass, askLabels, askText, nameOf, productPage, statusBadge } from './parts.js';
import { plain } from './text.js';
import { instant, number, percent, t } from './words.js';

const PAGE = 50;
const LABELLED_AT_ONCE = 1000;
const STATUSES = ['UNASSIGNED', 'REJECTED', 'ASSIGNED', 'APPROVED', 'DENIED'];
const SORTS = [['', 'byProduct'], ['confidence', 'leastSureFirst'], ['-confidence', 'surestFirst'], ['impact', 'byImpact'], ['-updatedAt', 'newestFirst'], ['updatedAt', 'oldestFirst']];
const COLUMNS = ['product', 'status', 'productClass', 'confidence', 'labels', 'updated'];

/** The filters of an address as a body takes them. */
function bodyFilter({ sort, ...filters }) {
  const body = { ...filters };
  for (const name of ['assignmentStatus', 'labels', 'strategy', 'autoAssignment', 'productIds']) if (body[name]) body[name] = body[name].split(',');
  for (const name of ['confidenceFrom', 'confidenceTo']) if (body[name]) body[name] = Number(body[name]);
  if (body.reviewNeeded) body.reviewNeeded = body.reviewNeeded === 'true';
  if (body.filterCriteria) body.filterCriteria = JSON.parse(body.filterCriteria);
  return body;
}

export async function table(main, { taxonomy, parameters, go }) {
  const filters = filtersOf(parameters);
  const chosen = new Map();
  const rows = h('tbody', {});
  const summary = h('span', { class: 'hint', 'aria-live': 'polite' });
  const more = h('button', { type: 'button', hidden: true }, t('more'));
  let cursor;
  let total;
  let turn = 0;

  const tell = () => show(summary, total !== undefined && `${number(total)} ${t('products')} · `, `${t('appliesTo')}: `, chosen.size ? `${number(chosen.size)} ${t('selected')}` : t('everything'));
  const link = (next) => `#/table?${new URLSearchParams(Object.entries(next).filter(([, value]) => value))}`;
  const isOn = (status) => filters.assignmentStatus === 'ALL' || filters.assignmentStatus.split(',').includes(status);

  const statuses = h('fieldset', {}, h('legend', {}, t('status')), STATUSES.map((status) => h('label', { class: 'box' }, h('input', { type: 'checkbox', name: 'status', value: status, checked: isOn(status) }), t(status))));
  const field = (name, text, attributes) => h('label', {}, text, h('input', { name, value: filters[name] ?? '', ...attributes }));
  const share = { type: 'number', min: 0, max: 1, step: 'any' };
  const form = h('form', { class: 'filters card', onsubmit: (event) => { event.preventDefault(); apply(); } }, statuses,
    field('productClass', t('prefix'), { inputmode: 'numeric', pattern: '[0-9]{1,10}' }),
    field('confidenceFrom', `${t('confidence')} ${t('from')}`, share), field('confidenceTo', `${t('confidence')} ${t('to')}`, share), field('labels', t('labels'), {}),
    h('label', {}, t('sort'), h('select', { name: 'sort' }, SORTS.map(([value, text]) => h('option', { value, selected: (filters.sort ?? '') === value }, t(text))))),
    h('label', { class: 'box' }, h('input', { type: 'checkbox', name: 'reviewNeeded', checked: filters.reviewNeeded === 'true' }), t('reviewNeeded')),
    h('button', { type: 'submit', class: 'primary' }, t('apply')), h('a', { class: 'button', href: '#/table?assignmentStatus=ALL' }, t('reset')),
    h('button', { type: 'button', onclick: copyLink }, t('shareLink')));

  function apply() {
    const marked = [...form.querySelectorAll('[name=status]:checked')].map((box) => box.value);
    const next = { ...filters, taxonomy, assignmentStatus: marked.length === 0 || marked.length === STATUSES.length ? 'ALL' : marked.join(',') };
    for (const name of ['productClass', 'confidenceFrom', 'confidenceTo', 'labels', 'sort']) next[name] = form.elements[name].value.trim();
    next.reviewNeeded = form.elements.reviewNeeded.checked ? 'true' : '';
    go(link(next));
  }

  async function copyLink() {
    const url = new URL(location.href);
    url.hash = link({ ...filters, taxonomy });
    const copied = await navigator.clipboard?.writeText(url.href).then(() => true, () => false);
    toast(copied ? t('copied') : url.href);
  }

  function row(item) {
    const pickOne = (event) => {
      if (event.target.checked) chosen.set(item.assignmentUuid, item); else chosen.delete(item.assignmentUuid);
      line.classList.toggle('chosen', event.target.checked);
      tell();
    };
    const line = h('tr', {}, h('td', {}, h('input', { type: 'checkbox', 'aria-label': `${t('select')} ${nameOf(item)}`, onchange: pickOne })),
      h('th', { scope: 'row' }, h('a', { href: productPage(taxonomy, item.assignmentUuid) }, plain(nameOf(item))), h('small', {}, plain(item.productId))),
      h('td', {}, statusBadge(item)), h('td', { class: 'code' }, item.productClass ?? '–'), h('td', { class: 'figure' }, item.confidence === undefined ? '–' : percent(item.confidence)),
      h('td', {}, item.labels.map((label) => h('span', { class: 'label' }, plain(label)))), h('td', { class: 'nowrap' }, instant(item.updatedAt)));
    return line;
  }

  async function load() {
    const mine = ++turn;
    const focused = document.activeElement === more;
    more.disabled = true;
    try {
      const answer = await page(taxonomy, { ...filters, size: PAGE, embed: 'PRODUCT', cursor, count: cursor ? undefined : true });
      if (mine === turn) add(answer);
    } finally {
      if (mine === turn) more.disabled = false;
      if (focused) more.focus();
    }
  }

  function add(answer) {
    total = answer.total ?? total;
    rows.append(...answer.items.map(row));
    cursor = cursorOf(answer);
    more.hidden = !cursor;
    if (rows.children.length === 0) show(rows, h('tr', {}, h('td', { colspan: COLUMNS.length + 1, class: 'empty' }, t('nothing'))));
    tell();
  }

  const all = h('input', { type: 'checkbox', 'aria-label': t('selectAll'), onchange: (event) => { for (const box of rows.querySelectorAll('input[type=checkbox]')) if (box.checked !== event.target.checked) box.click(); } });

  async function refresh() {
    chosen.clear();
    all.checked = false;
    cursor = undefined;
    rows.replaceChildren();
    await load();
  }

  /** Runs what a button asks for, tells why it cannot be done, and shows the list as it is then. */
  const attempt = (run) => async () => {
    try { await run(); } catch (error) { toast(error.message, { bad: true }); }
  };

  async function onChosen(action) {
    const productClass = action === 'ASSIGN' ? await askClass(taxonomy, t('searchClass')) : undefined;
    if (action === 'ASSIGN' && !productClass) return;
    const comment = action === 'DENY' ? await askText(t('deny'), t('comment'), { required: true }) : undefined;
    if (action === 'DENY' && !comment) return;
    if (chosen.size === 0) { await onFilter(action, productClass, comment); return; }
    const marked = [...chosen.values()];
    if (await act(taxonomy, action, marked, { productClass, comment })) toast(`${number(marked.length)} ${t('products')}: ${t(`event ${action}`)}`, { action: { label: t('undo'), run: takeBack } });
    await refresh();
  }

  const takeBack = attempt(async () => { if (await undo(taxonomy)) await refresh(); });

  /** Everything in the filter: how many first, then the action, in the background of the service. */
  async function onFilter(action, productClass, comment) {
    const body = { action, productClass, comment, filter: bodyFilter(filters) };
    const preview = await post(`/assignments/${taxonomy}/actions`, { ...body, dryRun: true });
    const sure = await dialog(t('previewAll'), (finish) => h('form', { onsubmit: (event) => { event.preventDefault(); finish(true); } },
      h('p', {}, `${number(preview.selected - preview.skipped)} ${t('of')} ${number(preview.selected)} ${t('products')}: ${t(`event ${action}`)}${productClass ? ` → ${productClass}` : ''}`),
      h('div', { class: 'row' }, h('button', { type: 'submit', class: 'primary', disabled: preview.selected === preview.skipped }, t('ok')), h('button', { type: 'button', autofocus: true, onclick: () => finish(false) }, t('cancel')))));
    if (!sure) return;
    const begun = await storing(post(`/assignments/${taxonomy}/actions`, { ...body, expectedCount: preview.selected }));
    const back = attempt(async () => { await restore(begun.actionId); toast(t('undone')); await refresh(); });
    const note = toast('', { stays: true, action: { label: t('undo'), run: back } });
    await finished(begun, (state) => { note.firstChild.textContent = `${t(`event ${action}`)}: ${number(state.done)} ${t('of')} ${number(state.selected)}`; });
    await refresh();
  }

  async function label() {
    if (chosen.size === 0) return;
    const labels = await askLabels([]);
    const uuids = [...chosen.keys()];
    if (!labels?.length) return;
    for (let from = 0; from < uuids.length; from += LABELLED_AT_ONCE) await call('PUT', '/assignments', { body: { assignmentUuids: uuids.slice(from, from + LABELLED_AT_ONCE), labels } });
    await refresh();
  }

  const button = (text, run) => h('button', { type: 'button', onclick: attempt(run) }, t(text));
  const actions = [['approve', 'APPROVE'], ['assign', 'ASSIGN'], ['reject', 'REJECT'], ['unassign', 'UNASSIGN'], ['deny', 'DENY']];
  more.addEventListener('click', attempt(load));
  show(main, h('h1', {}, t('table')), form,
    filters.filterCriteria && h('p', {}, h('a', { href: `#/search?${new URLSearchParams({ filterCriteria: filters.filterCriteria })}` }, t('criteria')), h('code', { class: 'json' }, filters.filterCriteria)),
    h('div', { class: 'row bulk', role: 'toolbar', 'aria-label': t('selected') }, actions.map(([text, action]) => button(text, () => onChosen(action))), button('label', label), button('undo', takeBack), summary),
    h('div', { class: 'card scroll', tabindex: '0', role: 'region', 'aria-label': t('table') }, h('table', { class: 'many' },
      h('thead', {}, h('tr', {}, h('td', {}, all), COLUMNS.map((name) => h('th', { scope: 'col' }, t(name))))), rows)), h('p', {}, more));
  await load();
}

