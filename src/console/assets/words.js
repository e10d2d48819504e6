// What the console says, in German and English.

const TEXTS = {
  title: ['VAT classification', 'VAT-Klassifizierung'],
  start: ['Overview', 'Übersicht'], queue: ['Queue', 'Arbeitsliste'], table: ['Table', 'Tabelle'],
  search: ['Search', 'Suche'], upload: ['Upload', 'Hochladen'], account: ['Account', 'Konto'],
  signIn: ['Sign in', 'Anmelden'], signOut: ['Sign out', 'Abmelden'], token: ['Access token', 'Zugangstoken'],
  tokenHint: ['It is kept in a cookie that scripts cannot read, until you sign out.', 'Es liegt in einem Cookie, das Skripte nicht lesen können, bis Sie sich abmelden.'],
  language: ['Language', 'Sprache'], theme: ['Appearance', 'Darstellung'], light: ['Light', 'Hell'], dark: ['Dark', 'Dunkel'], auto: ['As the system', 'Wie das System'],
  taxonomy: ['Taxonomy', 'Taxonomie'], skip: ['Skip to the content', 'Zum Inhalt'],
  openByStatus: ['By status', 'Nach Status'], byChapter: ['Open by chapter', 'Offen nach Kapitel'],
  byConfidence: ['Assigned, by confidence', 'Zugewiesen, nach Sicherheit'], waiting: ['Waiting for a person', 'Warten auf eine Person'],
  changed: ['Changed since a decision', 'Seit der Entscheidung geändert'], products: ['Products', 'Produkte'],
  leastSure: ['Review the least sure', 'Die unsichersten prüfen'], mostImpact: ['Review by what is at stake', 'Nach Tragweite prüfen'],
  UNASSIGNED: ['No class', 'Ohne Klasse'], ASSIGNED: ['Assigned', 'Zugewiesen'], APPROVED: ['Approved', 'Bestätigt'],
  REJECTED: ['Insufficient', 'Unzureichend'], DENIED: ['Denied', 'Gesperrt'],
  DESCRIPTION: ['the texts', 'die Texte'], 'CUSTOMS-CODE': ['a customs code', 'eine Zolltarifnummer'], MANUAL: ['a person', 'eine Person'],
  PENDING: ['being classified', 'wird klassifiziert'],
  approve: ['Approve', 'Bestätigen'], reject: ['Reject', 'Zurückweisen'], deny: ['Deny', 'Sperren'], reconfirm: ['Reconfirm', 'Entsperren'], unassign: ['Remove the class', 'Klasse entfernen'],
  assign: ['Assign', 'Zuweisen'], label: ['Label', 'Etikett'], comment: ['Comment', 'Kommentar'], approveWith: ['Approve with a comment', 'Mit Kommentar bestätigen'], classKey: ['Class', 'Klasse'], commentKey: ['Comment', 'Kommentar'], alikeKey: ['Alike', 'Ähnliche'], newLabel: ['New label', 'Neues Etikett'], undo: ['Undo', 'Rückgängig'],
  next: ['Next', 'Weiter'], previous: ['Previous', 'Zurück'], select: ['Select', 'Auswählen'], keys: ['Keys', 'Tasten'], alike: ['All that are alike', 'Alle ähnlichen'],
  candidates: ['Candidates', 'Kandidaten'], noCandidates: ['The texts speak for no class.', 'Die Texte sprechen für keine Klasse.'],
  rates: ['VAT rates', 'Mehrwertsteuersätze'], notDecided: ['not decided', 'nicht entschieden'], history: ['History', 'Verlauf'],
  similar: ['Training texts alike', 'Ähnliche Trainingstexte'], own: ['Own products alike', 'Ähnliche eigene Produkte'],
  codes: ['Customs codes', 'Zolltarifnummern'], conflict: ['contradicts', 'widerspricht'], description: ['Description', 'Beschreibung'], tags: ['Tags', 'Schlagwörter'],
  labels: ['Labels', 'Etiketten'], picture: ['Picture of the product', 'Bild des Produkts'], noName: ['(no name)', '(ohne Namen)'],
  confidence: ['Confidence', 'Sicherheit'], impact: ['At stake', 'Tragweite'], status: ['Status', 'Status'], productClass: ['Class', 'Klasse'], product: ['Product', 'Produkt'],
  updated: ['Changed', 'Geändert'], strategy: ['Found by', 'Gefunden durch'], sort: ['Order', 'Reihenfolge'],
  apply: ['Apply', 'Anwenden'], reset: ['Reset', 'Zurücksetzen'], from: ['from', 'von'], to: ['to', 'bis'],
  prefix: ['Class begins with', 'Klasse beginnt mit'], reviewNeeded: ['Only changed since a decision', 'Nur seit der Entscheidung geänderte'],
  missing: ['There is no such page.', 'Diese Seite gibt es nicht.'], storesFirst: ['What you decided is still being stored. You are signed out as soon as it is.', 'Was Sie entschieden haben, wird noch gespeichert. Danach werden Sie abgemeldet.'],
  notAllStored: ['Not all of it could be stored, so you are still signed in.', 'Nicht alles konnte gespeichert werden; Sie sind noch angemeldet.'], stillSignedIn: ['You are still signed in', 'Sie sind noch angemeldet'],
  nothing: ['Nothing here.', 'Nichts vorhanden.'], done: ['All done: nothing waits in this queue.', 'Alles erledigt: nichts wartet in dieser Liste.'],
  more: ['More', 'Mehr'], loading: ['Loading …', 'Lädt …'], away: ['The service does not answer. What you did is kept and sent again.', 'Der Dienst antwortet nicht. Ihre Eingaben bleiben und werden erneut gesendet.'],
  back: ['The service is back.', 'Der Dienst ist wieder da.'], refused: ['Refused', 'Abgelehnt'], open: ['Open', 'Öffnen'],
  undone: ['Undone', 'Rückgängig gemacht'], nothingToUndo: ['Nothing to undo.', 'Nichts rückgängig zu machen.'],
  someoneElse: ['Somebody else has just decided this one.', 'Gerade hat jemand anders darüber entschieden.'],
  of: ['of', 'von'], decisions: ['decided', 'entschieden'], waitingHere: ['waiting', 'offen'], decided: ['Approved', 'Bestätigt'], keptSince: ['left, since somebody changed them meanwhile', 'unverändert, da inzwischen geändert'],
  awayNow: ['The service does not answer.', 'Der Dienst antwortet nicht.'], again: ['Try again', 'Erneut versuchen'], country: ['Country', 'Land'], rate: ['Rate', 'Satz'], rule: ['Goods and source', 'Waren und Quelle'],
  decisionAlike: ['a decision alike', 'eine ähnliche Entscheidung'], appliesTo: ['Applies to', 'Gilt für'], everything: ['everything in this filter', 'alles in diesem Filter'], deleteSelection: ['Select none', 'Nichts auswählen'],
  usage: ['Usage', 'Verbrauch'], access: ['Access', 'Zugang'], user: ['User', 'Benutzer'], level: ['Level', 'Stufe'], unlimited: ['unlimited', 'unbegrenzt'],
  tokensHint: ['Tokens are made and ended on the command line:', 'Tokens werden auf der Kommandozeile angelegt und beendet:'], tokens: ['Tokens in force', 'Gültige Tokens'], tokenId: ['Token id', 'Token-ID'], created: ['Made', 'Angelegt'], expires: ['Expires', 'Läuft ab'], lastUsed: ['Last used', 'Zuletzt benutzt'], never: ['never', 'nie'], tokensAdmin: ['Who has the level ADMIN sees the ids of all tokens here.', 'Wer die Stufe ADMIN hat, sieht hier die IDs aller Tokens.'], criteriaHint: ['Words side by side must all hold; or between them is enough for one; - before a word excludes it; "in quotes" finds whole words.', 'Nebeneinander stehende Wörter gelten alle; mit or genügt eines; - vor einem Wort schließt es aus; "in Anführungszeichen" findet ganze Wörter.'],
  byProduct: ['Product', 'Produkt'], leastSureFirst: ['Least sure first', 'Unsicherste zuerst'], surestFirst: ['Surest first', 'Sicherste zuerst'], byImpact: ['Most at stake', 'Größte Tragweite'], newestFirst: ['Newest change', 'Neueste Änderung'], oldestFirst: ['Oldest change', 'Älteste Änderung'],
  'event CREATE': ['created', 'angelegt'], 'event AUTO_ASSIGN': ['classified', 'klassifiziert'], 'event AUTO_ABORT': ['classification stopped', 'Klassifizierung abgebrochen'], 'event PRODUCT_CHANGED': ['product changed', 'Produkt geändert'], 'event REQUEUE': ['queued again', 'erneut eingereiht'],
  'event ASSIGN': ['assigned', 'zugewiesen'], 'event APPROVE': ['approved', 'bestätigt'], 'event REJECT': ['rejected', 'zurückgewiesen'], 'event DENY': ['denied', 'gesperrt'], 'event RECONFIRM': ['reconfirmed', 'entsperrt'], 'event UNASSIGN': ['class removed', 'Klasse entfernt'],
  'event UNDO': ['taken back', 'zurückgenommen'], 'event LABEL': ['labelled', 'etikettiert'], 'event UNLABEL': ['label removed', 'Etikett entfernt'], 'event RULE_CHANGED': ['judged again by new rules', 'nach neuen Regeln neu beurteilt'], file: ['CSV or XLSX file', 'CSV- oder XLSX-Datei'], dryRun: ['Only check', 'Nur prüfen'],
  uploadHint: ['What a file does not speak of stays as it is.', 'Was eine Datei nicht nennt, bleibt, wie es ist.'], start_upload: ['Send', 'Senden'], fileLanguage: ['Language of columns that do not name theirs', 'Sprache der Spalten, die keine nennen'], otherColumns: ['Columns that have other names', 'Spalten mit anderen Namen'], columnsHint: ['One a line: the name in the file, =, and the field that it stands for. Nothing behind = leaves the column.', 'Eine je Zeile: der Name in der Datei, =, und das Feld, für das sie steht. Ohne etwas hinter = bleibt die Spalte außer Acht.'], rowsDone: ['rows done', 'Zeilen erledigt'],
  importDone: ['The file is stored.', 'Die Datei ist gespeichert.'], importChecked: ['The file was checked and nothing stored.', 'Die Datei wurde geprüft und nichts gespeichert.'], importStopped: ['It stopped before the end', 'Vor dem Ende abgebrochen'], importCancelled: ['Cancelled; what was stored stays.', 'Abgebrochen; was gespeichert war, bleibt.'], importFaults: ['Lines that were refused', 'Abgelehnte Zeilen'],
  'import created': ['New', 'Neu'], 'import updated': ['Changed', 'Geändert'], 'import unchanged': ['As they were', 'Unverändert'], 'import refused': ['Refused', 'Abgelehnt'], leftColumns: ['Columns left out of account', 'Nicht beachtete Spalten'], line: ['Line', 'Zeile'], column: ['Column', 'Spalte'], fault: ['What is wrong', 'Was daran falsch ist'], report: ['Report', 'Bericht'],
  plan: ['Plan', 'Tarif'], used: ['Checks this month', 'Prüfungen in diesem Monat'], limit: ['Limit', 'Grenze'], precision: ['Promised precision of decisions', 'Zugesagte Genauigkeit der Entscheidungen'],
  cancel: ['Cancel', 'Abbrechen'], ok: ['OK', 'OK'], searchClass: ['Search a class', 'Klasse suchen'], searchClassHint: ['A code, a label, or the word that shops use', 'Eine Nummer, eine Bezeichnung oder das Wort der Shops'],
  why: ['Why?', 'Warum?'], takeBack: ['Take back', 'Zurücknehmen'], takesBack: ['Takes back what was done to so many products', 'Nimmt zurück, was mit so vielen Produkten geschah'], leastSureList: ['List the least sure', 'Die unsichersten auflisten'], findProduct: ['Find a product: its id, or words of its name', 'Ein Produkt finden: ID oder Wörter des Namens'], find: ['Find', 'Finden'], applyAlike: ['Apply to the marked', 'Auf die markierten anwenden'], alikeNone: ['No product is alike.', 'Kein Produkt ist ähnlich.'],
  criteria: ['Conditions', 'Bedingungen'], addCriterion: ['Add a condition', 'Bedingung hinzufügen'], and: ['and', 'und'], or: ['or', 'oder'], remove: ['Remove', 'Entfernen'],
  field: ['Field', 'Feld'], value: ['Value', 'Wert'], keywords: ['Name or description', 'Name oder Beschreibung'], productName: ['Name', 'Name'], productTag: ['Tag', 'Schlagwort'],
  productId: ['Product id', 'Produkt-ID'], countryOfOrigin: ['Country of origin', 'Ursprungsland'], json: ['As the interface takes it', 'Wie die Schnittstelle es nimmt'],
  selected: ['selected', 'ausgewählt'], selectAll: ['Select all', 'Alle auswählen'], shareLink: ['Copy the link to this list', 'Link zu dieser Liste kopieren'], copied: ['Copied.', 'Kopiert.'],
  versionStale: ['It was changed meanwhile; here is its present state.', 'Es wurde inzwischen geändert; hier ist der jetzige Stand.'],
  previewAll: ['Apply to everything in this filter', 'Auf alles in diesem Filter anwenden'], wouldChange: ['would be changed', 'würden geändert'],
};

const LANGUAGES = ['en', 'de'];
let language = localStorage.getItem('language')
  ?? (navigator.languages.map((one) => one.slice(0, 2)).find((one) => LANGUAGES.includes(one)) ?? 'en');

/** The language in use: `en` or `de`. */
export const current = () => language;

/** Takes another language from now on. */
export function choose(next) {
  language = next;
  localStorage.setItem('language', next);
}

/** A text in the language in use. */
export function t(key) {
  const texts = TEXTS[key];
  return texts ? texts[LANGUAGES.indexOf(language)] : key.replace('event ', '');
}

/** One of two labels `{de, en}`, as answers have them. */
export const pick = (labels) => labels?.[language] || labels?.en || labels?.de || '';

export const number = (value) => new Intl.NumberFormat(language).format(value);
export const percent = (value) => (value === undefined || value === null ? '–' : new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: 0 }).format(value));
export const instant = (text) => (text ? new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(text)) : '');
