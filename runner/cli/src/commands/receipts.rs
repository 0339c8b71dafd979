//! `toolcell receipts`: the log, or one entry of it.

use toolcell_client::Client;
use toolcell_types::ReceiptItem;

use crate::args::ReceiptsArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reach::reach_any;
use crate::render;

/// Lists entries, or writes one envelope.
pub(crate) async fn receipts(args: &ReceiptsArgs) -> Result<Exit, Failure> {
    let client = reach_any(&args.reach).await?.client;
    match args.index {
        Some(index) => one(&client, index).await?,
        None if args.json => {
            let page = client.receipts(args.after, args.limit).await.map_err(Failure::of_client)?;
            render::value(&page)?;
        }
        None => list(&client, args.after, args.limit).await?,
    }
    Ok(Exit::Ok)
}

async fn one(client: &Client, index: u64) -> Result<(), Failure> {
    let page = client.receipts(index.checked_sub(1), Some(1)).await.map_err(Failure::of_client)?;
    let found = page.receipts.iter().find(|item| item.index == index);
    let ReceiptItem { envelope, .. } = found.ok_or_else(|| missing(index))?;
    render::value(envelope)
}

/// Page by page to the end of the log, or one page of at most `limit`.
async fn list(client: &Client, mut after: Option<u64>, limit: Option<u32>) -> Result<(), Failure> {
    let mut has_head = false;
    loop {
        let page = client.receipts(after, limit).await.map_err(Failure::of_client)?;
        if !page.receipts.is_empty() || !has_head {
            render::out(render::receipts(&page, !has_head).as_bytes())?;
        }
        has_head = true;
        match page.last {
            Some(last) if limit.is_none() => after = Some(last),
            Some(_) | None => return Ok(()),
        }
    }
}

fn missing(index: u64) -> Failure {
    let error = anyhow::anyhow!("there is no entry {index} in the log");
    Failure::new(Exit::Failed, error, "list what there is: toolcell receipts")
}
