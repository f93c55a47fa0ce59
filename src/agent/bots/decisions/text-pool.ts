// Texts by number, each kept once for as long as somebody holds it: what 100,000 decisions repeat (hosts, bots, user agents) takes the room of one.

type Held = { readonly no: number; readonly text: string; holders: number };

export class TextPool {
  readonly #byText = new Map<string, Held>();
  readonly #byNo: (Held | undefined)[] = [undefined];
  readonly #free: number[] = [];

  /** Distinct texts held. */
  get size(): number {
    return this.#byText.size;
  }

  /** 0 stands for no text. */
  hold(text: string | null): number {
    if (text === null) return 0;
    let held = this.#byText.get(text);
    if (held === undefined) {
      const no = this.#free.pop() ?? this.#byNo.length;
      held = { no, text, holders: 0 };
      this.#byText.set(text, held);
      this.#byNo[no] = held;
    }
    held.holders++;
    return held.no;
  }

  text(no: number): string | null {
    return this.#byNo[no]?.text ?? null;
  }

  release(no: number): void {
    const held = this.#byNo[no];
    if (held === undefined || --held.holders > 0) return;
    this.#byText.delete(held.text);
    this.#byNo[no] = undefined;
    this.#free.push(no);
  }
}
