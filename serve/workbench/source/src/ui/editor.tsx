/** The editor of SPARQL: CodeMirror, loaded when it is first shown. Other languages have it without completion. */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionSource } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, toggleComment } from "@codemirror/commands";
import { HighlightStyle, bracketMatching, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, linter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Annotation, EditorState, Prec, type Extension } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers, placeholder, rectangularSelection } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { nonce } from "../app/theme";
import { sparql } from "./sparql-language";

export interface Mark { line: number; column: number; message: string }
export interface EditorProps {
  value: string;
  onChange?: (text: string) => void;
  onRun?: () => void;
  onEscape?: () => boolean;
  /** What is wrong, as a run has found it. */
  fault?: Mark | null;
  /** Looks for what is wrong when nobody has written for a moment. */
  check?: (text: string) => Promise<Mark | null>;
  /** What `check` has found last. */
  onChecked?: (fault: Mark | null) => void;
  complete?: CompletionSource;
  label: string;
  readOnly?: boolean;
  language?: "sparql" | "turtle" | "plain";
  hint?: string;
}

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--syn-keyword)", fontWeight: "600" },
  { tag: tags.function(tags.variableName), color: "var(--syn-keyword)" },
  { tag: tags.variableName, color: "var(--syn-variable)" },
  { tag: [tags.string, tags.annotation], color: "var(--syn-string)" },
  { tag: [tags.number, tags.bool], color: "var(--syn-number)" },
  { tag: tags.url, color: "var(--syn-iri)" },
  { tag: tags.namespace, color: "var(--syn-prefix)" },
  { tag: tags.labelName, color: "var(--syn-prefix)", fontStyle: "italic" },
  { tag: tags.comment, color: "var(--syn-comment)", fontStyle: "italic" },
]);
const looks = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", backgroundColor: "var(--surface)", color: "var(--text)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--text)", padding: "10px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--text-muted)", border: "none", paddingLeft: "4px" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--hover) 45%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--text)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent)", color: "inherit" },
  ".cm-selectionMatch": { backgroundColor: "var(--accent-soft)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--sunken)", border: "1px solid var(--line)", color: "var(--text-muted)", padding: "0 6px" },
  ".cm-foldGutter .cm-gutterElement": { cursor: "pointer", color: "var(--text-muted)" },
  ".cm-placeholder": { color: "var(--text-muted)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "8px", boxShadow: "var(--shadow-high)", overflow: "hidden" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12px", maxHeight: "280px", minWidth: "280px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 10px", display: "flex", alignItems: "baseline", gap: "8px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent-soft)", color: "var(--text)" },
  ".cm-completionLabel": { overflow: "hidden", textOverflow: "ellipsis" },
  ".cm-completionDetail": { marginLeft: "auto", fontStyle: "normal", color: "var(--text-muted)", fontFamily: "var(--font)", whiteSpace: "nowrap" },
  ".cm-completionMatchedText": { textDecoration: "none", color: "var(--accent-text)", fontWeight: "700" },
  ".cm-completionIcon": { display: "none" },
  ".cm-tooltip.cm-completionInfo": { padding: "8px 12px", maxWidth: "360px", fontSize: "12px" },
  ".cm-diagnostic": { padding: "8px 12px", fontFamily: "var(--font)", fontSize: "12px", borderLeft: "3px solid var(--bad)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad) 1.5px", textUnderlineOffset: "4px" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-panel.cm-search": { padding: "8px 10px" },
  ".cm-panel.cm-search input, .cm-panel.cm-search button": { fontFamily: "var(--font)" },
  ".cm-textfield": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "5px" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "5px" },
});

const CHECK_AFTER_MS = 400;

/** Underlines the word at a place. At the end of a text there is nothing to underline: the character before it is. */
function diagnosticsOf(state: EditorState, fault: Mark | null): Diagnostic[] {
  if (!fault || fault.line > state.doc.lines) return [];
  const line = state.doc.line(fault.line);
  const from = Math.min(line.from + fault.column - 1, line.to);
  const word = /^[\p{L}\p{N}_:?$]+/u.exec(state.doc.sliceString(from, line.to))?.[0].length ?? 1;
  const to = Math.min(from + word, state.doc.length);
  return [{ ...(from < to ? { from, to } : { from: Math.max(0, from - 1), to: from }), severity: "error", message: fault.message }];
}

const given = Annotation.define<boolean>(); // a text that was not typed here

export default function Editor(props: EditorProps) {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const now = useRef(props);
  now.current = props;

  // Layout effects run before anything else can be typed. A later effect would put back a text that is old by then.
  useLayoutEffect(() => {
    const extensions: Extension[] = [
      EditorView.cspNonce.of(nonce),
      Prec.highest(keymap.of([
        { key: "Mod-Enter", run: () => { now.current.onRun?.(); return true; } },
        { key: "Escape", run: () => now.current.onEscape?.() ?? false },
        { key: "Mod-/", run: toggleComment },
      ])),
      lineNumbers(), foldGutter(), highlightSpecialChars(), history(), drawSelection(), rectangularSelection(), indentOnInput(), bracketMatching(),
      closeBrackets(), highlightActiveLine(), highlightSelectionMatches(), syntaxHighlighting(colours), looks, EditorView.lineWrapping,
      // Tab leaves the editor unless a completion is open, so the keyboard is not caught.
      keymap.of([...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...lintKeymap]),
      EditorView.contentAttributes.of({ "aria-label": props.label, spellcheck: "false", autocapitalize: "off" }),
      EditorView.updateListener.of((update) => { if (update.docChanged && !update.transactions.some((one) => one.annotation(given))) now.current.onChange?.(update.state.doc.toString()); }),
      EditorState.readOnly.of(props.readOnly ?? false),
    ];
    if (props.language !== "plain") extensions.push(sparql());
    if (props.complete) extensions.push(autocompletion({ override: [(context) => now.current.complete!(context)], icons: false, maxRenderedOptions: 60 }));
    if (props.check) extensions.push(linter(async (own) => {
      const text = own.state.doc.toString();
      const fault = await now.current.check!(text);
      if (own.state.doc.toString() === text) now.current.onChecked?.(fault);
      return diagnosticsOf(own.state, fault);
    }, { delay: CHECK_AFTER_MS }));
    if (props.hint) extensions.push(placeholder(props.hint));
    const made = new EditorView({ state: EditorState.create({ doc: props.value, extensions }), parent: box.current! });
    view.current = made;
    return () => { made.destroy(); view.current = null; };
  }, []);

  useLayoutEffect(() => { // a text that comes from elsewhere: another tab, formatting
    const own = view.current;
    if (own && own.state.doc.toString() !== props.value) {
      own.dispatch({ changes: { from: 0, to: own.state.doc.length, insert: props.value }, selection: { anchor: Math.min(own.state.selection.main.anchor, props.value.length) }, annotations: given.of(true) });
    }
  }, [props.value]);

  useEffect(() => {
    const own = view.current;
    if (!own) return;
    const found = diagnosticsOf(own.state, props.fault ?? null);
    if (found[0] || !props.check) own.dispatch(setDiagnostics(own.state, found), { effects: found[0] ? EditorView.scrollIntoView(found[0].from) : [] });
  }, [props.fault]);

  return <div class="editor" ref={box} />;
}
