//! receipts
