// A fault in one page leaves the rest of the console as it is.

import { Component, type ComponentChildren } from "preact";
import { Note } from "./pieces.tsx";

type Props = {
  /** Another page begins anew. */
  readonly of: string;
  readonly children: ComponentChildren;
};
type State = { readonly fault?: string };

export class FaultBoundary extends Component<Props, State> {
  override componentDidCatch(error: unknown): void {
    this.setState({ fault: error instanceof Error ? error.message : String(error) });
    // For whoever looks at the browser's console.
    reportError(error);
  }

  override componentDidUpdate(before: Props): void {
    if (before.of !== this.props.of && this.state.fault !== undefined) this.setState({ fault: "" });
  }

  override render({ children }: Props, { fault = "" }: State) {
    if (fault === "") return children;
    return <Note tone="bad">This page cannot be shown: {fault}. The others can.</Note>;
  }
}
