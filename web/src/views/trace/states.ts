/** How a query or a call stands, in colour. */
export function kindOf(state: string | null): "good" | "warn" | "bad" | "info" | "plain" {
  switch (state) {
    case null:
    case "running":
      return "info";
    case "complete":
    case "success":
      return "good";
    case "cancelled":
      return "plain";
    case "refused":
    case "denied":
    case "limited":
    case "interrupted":
      return "warn";
    default:
      return "bad";
  }
}
