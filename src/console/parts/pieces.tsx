// The small pieces that every page is made of. Text is always text: nothing here makes markup of what a visitor or customer wrote.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Asked } from "../asked.ts";
import type { Refusal } from "../api.ts";
import { distance, moment } from "../words.ts";

type Inner = { readonly children?: ComponentChildren };

export function Panel({
  title,
  beside,
  takesFocus = false,
  children,
}: Inner & {
  readonly title: string;
  readonly beside?: ComponentChildren;
  /** Whoever uses a keyboard, or hears the page, is at its heading once it comes. */
  readonly takesFocus?: boolean;
}): JSX.Element {
  const id = useId();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (takesFocus) heading.current?.focus();
  }, [takesFocus]);
  return (
    <section class="panel" aria-labelledby={id}>
      <header>
        <h2 ref={heading} id={id} tabIndex={takesFocus ? -1 : undefined}>
          {title}
        </h2>
        {beside}
      </header>
      {children}
    </section>
  );
}

export type Tone = "good" | "warn" | "bad" | "plain";

export function Badge({ tone, children }: Inner & { readonly tone: Tone }): JSX.Element {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export function Note({ tone = "plain", children }: Inner & { readonly tone?: Tone }): JSX.Element {
  return (
    <p class={`note ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      {children}
    </p>
  );
}

/** Says why something was refused, with each fault and its place. */
export function RefusalNote({
  failure,
}: {
  readonly failure: Refusal | undefined;
}): JSX.Element | null {
  if (failure === undefined) return null;
  return (
    <div class="note bad" role="alert">
      {failure.message}
      {failure.errors.length > 0 && (
        <ul>
          {failure.errors.map(({ path, message, did_you_mean: meant }) => (
            <li key={`${path} ${message}`}>
              <code>{path}</code> {message}
              {meant !== undefined && !message.includes(meant) && `; did you mean ${meant}?`}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Shows what was asked for once it is there; before that it says that it is being asked for, or why it is not there. */
export function Answer<T>({
  asked,
  children,
}: {
  readonly asked: Asked<T>;
  readonly children: (value: T) => ComponentChildren;
}): JSX.Element {
  const { value, failure } = asked;
  return (
    <>
      {failure !== undefined && (
        <Note tone="bad">
          {failure.message} <Button onClick={asked.again}>Try again</Button>
        </Note>
      )}
      {value !== undefined
        ? children(value)
        : failure === undefined && <p class="quiet">Loading …</p>}
    </>
  );
}

type ButtonProps = Inner & {
  readonly kind?: "main" | "danger" | "plain";
  readonly disabled?: boolean;
  readonly onClick?: () => void;
  readonly submits?: boolean;
  readonly label?: string;
};

export function Button({
  kind = "plain",
  disabled,
  onClick,
  submits,
  label,
  children,
}: ButtonProps): JSX.Element {
  return (
    <button
      type={submits === true ? "submit" : "button"}
      class={kind}
      disabled={disabled}
      aria-label={label}
      onClick={onClick}
    >
      {children}
    </button>
  );
}

type FieldProps = {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly type?: "text" | "password" | "search" | "number" | "email" | "url" | "datetime-local";
  readonly hint?: ComponentChildren;
  readonly rows?: number;
  readonly autocomplete?: string;
  readonly isRequired?: boolean;
  readonly placeholder?: string;
};

export function TextField({
  label,
  value,
  onInput,
  type = "text",
  hint,
  rows,
  autocomplete = "off",
  isRequired,
  placeholder,
}: FieldProps): JSX.Element {
  const id = useId();
  // Types of inputs differ for the compiler in what else they take; these take the same.
  const oneType = type as "text";
  const common = {
    id,
    value,
    spellcheck: false,
    required: isRequired,
    placeholder,
    "aria-describedby": hint === undefined ? undefined : `${id}-hint`,
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
      onInput(currentTarget.value),
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows === undefined ? (
        <input {...common} type={oneType} autocomplete={autocomplete} />
      ) : (
        <textarea {...common} rows={rows} />
      )}
      {hint !== undefined && (
        <small id={`${id}-hint`} class="quiet">
          {hint}
        </small>
      )}
    </div>
  );
}

export function Choice<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  readonly label: string;
  readonly value: T;
  readonly options: readonly (readonly [value: T, text: string])[];
  readonly onChange: (value: T) => void;
}): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value}
        onChange={({ currentTarget }) => onChange(currentTarget.value as T)}
      >
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Check({
  label,
  isOn,
  onChange,
}: {
  readonly label: ComponentChildren;
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
}): JSX.Element {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isOn}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
      {label}
    </label>
  );
}

/** Choices of one kind, beside each other; the arrow keys move among them as in any group of radio buttons. */
export function Choices<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  readonly label: string;
  readonly value: T;
  readonly options: readonly (readonly [value: T, text: string])[];
  readonly onChange: (value: T) => void;
}): JSX.Element {
  const name = useId();
  return (
    <fieldset class="choices">
      <legend class="hidden">{label}</legend>
      {options.map(([one, text]) => (
        <label key={one} class={one === value ? "chosen" : ""}>
          <input type="radio" name={name} checked={one === value} onChange={() => onChange(one)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}

/** A table that scrolls sideways by itself where it is wider than the page. */
export function Table({
  heads,
  caption,
  children,
}: Inner & {
  readonly heads: readonly ComponentChildren[];
  readonly caption: string;
}): JSX.Element {
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {heads.map((head, no) => (
              // The heads of one table never change places.
              <th key={no} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** A moment in people's words; the exact one is shown when it is pointed at. */
export function Time({
  at,
  isDistance,
}: {
  readonly at: string | number;
  readonly isDistance?: boolean;
}): JSX.Element {
  const ms = typeof at === "number" ? at * 1_000 : Date.parse(at);
  const [, setTick] = useState(0);
  useEffect(() => {
    if (isDistance !== true) return undefined;
    const timer = setInterval(() => setTick((tick) => tick + 1), 10_000);
    return () => clearInterval(timer);
  }, [isDistance]);
  const exact = new Date(ms).toISOString();
  return (
    <time dateTime={exact} title={exact}>
      {isDistance === true ? distance(ms) : moment(ms)}
    </time>
  );
}

/** Asks before something that cannot be taken back. */
export function Confirm({
  question,
  doIt,
  kind = "danger",
  label,
  disabled,
  onYes,
  children,
}: Inner & {
  readonly question: string;
  readonly doIt: string;
  readonly kind?: "main" | "danger";
  readonly label?: string;
  readonly disabled?: boolean;
  readonly onYes: () => void;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  return (
    <>
      <Button label={label} disabled={disabled} onClick={() => dialog.current?.showModal()}>
        {children}
      </Button>
      <dialog ref={dialog} aria-labelledby={id}>
        <p id={id}>{question}</p>
        <div class="row">
          <Button
            kind={kind}
            onClick={() => {
              dialog.current?.close();
              onYes();
            }}
          >
            {doIt}
          </Button>
          <Button onClick={() => dialog.current?.close()}>Leave it</Button>
        </div>
      </dialog>
    </>
  );
}

/** A secret that is shown once. */
export function Secret({
  label,
  text,
}: {
  readonly label: string;
  readonly text: string;
}): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  return (
    <div class="note good" role="status">
      <strong>{label}</strong>
      <pre class="secret">{text}</pre>
      <Button
        onClick={() => {
          navigator.clipboard.writeText(text).then(
            () => setCopied(true),
            () => setCopied(false),
          );
        }}
      >
        {isCopied ? "Copied" : "Copy"}
      </Button>{" "}
      It is shown only now.
    </div>
  );
}
